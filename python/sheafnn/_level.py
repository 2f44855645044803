"""Which compiled module is sheafnn._core.

A package may hold the module several times, for levels of processors. Each is in a folder of the level's name, which python/levels.cmake
makes; a package without such folders has one module. To import this file makes the folder of a level a part of the package.
"""

from __future__ import annotations

import os
import pathlib
from typing import Sequence

from . import __path__

VARIABLE = "SHEAFNN_CPU_LEVEL"


def choose(wanted: str | None, present: Sequence[str], supported: Sequence[str]) -> str:
    """The level of the module to import.

    :param wanted: a level; None or an empty text: the highest of those present that the processor supports
    :param present: the levels of the package, the lowest first
    :param supported: the levels of the processor
    :raises ValueError: the package or the processor does not have the level that is wanted
    :raises ImportError: the processor supports no level of the package
    """
    usable = [level for level in present if level in supported]
    if wanted in usable:
        return wanted
    if usable and not wanted:
        return usable[-1]
    both = f"this package has {', '.join(present)}, and this processor supports {', '.join(supported)}"
    if wanted:
        raise ValueError(f"{VARIABLE}: {wanted!r} is not allowed; {both}")
    raise ImportError(f"sheafnn has no compiled module for this processor: {both}")


def add_folder(path: list[str], wanted: str | None) -> None:
    """Adds the folder of the chosen level to the path of a package; adds nothing where the package has one module.

    :param path: ``__path__`` of the package
    """
    folders = {folder.name: folder for place in path for folder in pathlib.Path(place).glob("x86-64*")}
    if folders:
        from . import _processor

        path.append(str(folders[choose(wanted, sorted(folders), _processor.levels())]))


add_folder(__path__, os.environ.get(VARIABLE))

from . import _core  # noqa: E402

the_only = [_core.built_for]
choose(os.environ.get(VARIABLE), the_only, the_only)  # a variable that names another level is an error with one module too


def cpu_level() -> str:
    """The processors that the compiled module is for.

    :returns: ``"x86-64"``, ``"x86-64-v2"``, ``"x86-64-v3"`` (AVX2, FMA) or ``"x86-64-v4"`` (AVX-512) in a wheel for several
        levels. A module that was compiled for one machine is ``"native"``, one for the whole architecture ``"generic"``

    The environment variable ``SHEAFNN_CPU_LEVEL`` chooses a level of the wheel before the package is imported. The default is the
    highest level that the processor supports.
    """
    return _core.built_for
