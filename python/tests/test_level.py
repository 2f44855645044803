"""The choice of the compiled module; packaging/build_wheels.sh tries the modules themselves."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import sheafnn
from sheafnn import _core, _level

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
PRESENT = ["x86-64", "x86-64-v3", "x86-64-v4"]


@pytest.mark.parametrize(
    ("wanted", "supported", "chosen"),
    [
        (None, LEVELS, "x86-64-v4"),
        ("", LEVELS[:3], "x86-64-v3"),
        (None, LEVELS[:2], "x86-64"),  # the package has no x86-64-v2
        ("x86-64", LEVELS, "x86-64"),
        ("x86-64-v3", LEVELS, "x86-64-v3"),
    ],
)
def test_the_highest_level_that_the_processor_supports(wanted, supported, chosen):
    assert _level.choose(wanted, PRESENT, supported) == chosen


@pytest.mark.parametrize("wanted", ["x86-64-v2", "x86-64-v4", "avx", "X86-64"])
def test_a_level_that_package_or_processor_lack(wanted):
    with pytest.raises(ValueError) as error:
        _level.choose(wanted, PRESENT, LEVELS[:3])
    assert str(error.value) == (
        f"SHEAFNN_CPU_LEVEL: '{wanted}' is not allowed; this package has x86-64, x86-64-v3, x86-64-v4,"
        " and this processor supports x86-64, x86-64-v2, x86-64-v3"
    )


def test_a_processor_below_every_level():
    with pytest.raises(ImportError, match="no compiled module for this processor: this package has x86-64-v3, and .* supports x86-64$"):
        _level.choose(None, ["x86-64-v3"], ["x86-64"])


def run(program, path, level=None):
    environment = {**os.environ, "PYTHONPATH": str(path)}
    environment.pop(_level.VARIABLE, None)
    if level is not None:
        environment[_level.VARIABLE] = level
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


@pytest.fixture
def package(tmp_path):
    """A package of three levels for a processor of the level x86-64-v3; its modules are written in Python."""
    folder = tmp_path / "package"
    for level in PRESENT:
        (folder / level).mkdir(parents=True)
        (folder / level / "_core.py").write_text(f"built_for = {level!r}\nclass Model: pass\n")
    (folder / "_processor.py").write_text(f"def levels(): return {LEVELS[:3]}\n")
    (folder / "__init__.py").write_text("from ._level import cpu_level\n")
    shutil.copy(_level.__file__, folder)
    return tmp_path


@pytest.mark.parametrize(("level", "chosen"), [(None, "x86-64-v3"), ("", "x86-64-v3"), ("x86-64", "x86-64")])
def test_the_module_of_a_level_is_imported(package, level, chosen):
    program = "import package._core, pickle; print(package.cpu_level(), package._core.Model.__module__, pickle.loads(pickle.dumps(package._core.Model)))"
    assert run(program, package, level).stdout.split()[:2] == [chosen, "package._core"]


@pytest.mark.parametrize("level", ["x86-64-v4", "v3"])
def test_the_import_says_what_is_wrong_with_a_level(package, level):
    result = run("import package", package, level)
    assert result.returncode == 1
    assert f"ValueError: SHEAFNN_CPU_LEVEL: '{level}' is not allowed; this package has x86-64, x86-64-v3" in result.stderr


def test_the_installed_package():
    path = pathlib.Path(sheafnn.__file__).parents[1]
    program = "import sheafnn; print(sheafnn.cpu_level())"
    assert sheafnn.cpu_level() == _core.built_for
    assert run(program, path, _core.built_for).stdout.strip() == _core.built_for
    message = run(program, path, "x86-64-v9").stderr
    assert "SHEAFNN_CPU_LEVEL: 'x86-64-v9' is not allowed; this package has " in message
    assert _core.built_for in message
