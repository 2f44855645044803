"""The Python blocks of README.md and the pages run. SHEAFNN_PROGRAMS names the folder of the C++ programs."""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import sheafnn

root = pathlib.Path(__file__).parents[2]
pages = ["README.md", *(str(page.relative_to(root)) for page in sorted((root / "docs").rglob("*.md")))]
# A block, and behind it what it prints: a block without a language, or a comment in its last line.
shown = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
of_pages = {page: [m.groups() for m in shown.finditer((root / page).read_text(encoding="utf-8"))] for page in pages}
with_file = next(code for code, _ in of_pages["docs/learned_sheaf.md"] if "sheaf.npz" in code)  # reads what a program wrote
of_pages["docs/learned_sheaf.md"] = [block for block in of_pages["docs/learned_sheaf.md"] if block[0] != with_file]
blocks = []
for page, of_page in of_pages.items():
    if page.startswith("docs/tutorials/") and of_page:  # the blocks of a lesson follow each other
        blocks.append(pytest.param(of_page, id=page))
    else:
        blocks += [pytest.param([block], id=f"{page} {i}") for i, block in enumerate(of_page)]
number = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def same_output(printed, expected):
    """Equal words. Numbers may differ by a quarter and 0.1, before % or ° by a quarter and 12: processors round differently."""
    assert number.sub("N", printed).split() == number.sub("N", expected).split()
    for found, text in zip(number.findall(printed), number.finditer(expected), strict=True):
        wanted = float(text[0])
        after = expected[text.end() :].lstrip(" ")[:1]
        assert abs(float(found) - wanted) <= 0.25 * abs(wanted) + (12 if after in ("%", "°") else 0.1), (found, text[0], printed)


@pytest.mark.parametrize("lesson", blocks)
def test_block(lesson, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("torch", "torch_geometric"):
        if any(re.search(rf"^(import|from) (\w+, )*{name}\b", block, re.MULTILINE) or ".to_pyg(" in block for block, _ in lesson):
            pytest.importorskip(name)
    names = {}
    for block, output in lesson:
        exec(compile(block, "block", "exec"), names)
        printed = capsys.readouterr().out
        comment = re.search(r"^print\(.*\n# (.*)\n\Z", block, re.MULTILINE)
        if output or comment:
            same_output(printed, output or comment[1])


def test_other_output_fails():
    same_output("accuracy 81 %, loss 0.31", "accuracy 80 %, loss 0.3")
    for other in ("accuracy 40 %, loss 0.3", "accuracy 80 %, loss 0.9", "precision 80 %, loss 0.3", "accuracy 80 %"):
        with pytest.raises((AssertionError, ValueError)):
            same_output(other, "accuracy 80 %, loss 0.3")


@pytest.mark.skipif("SHEAFNN_PROGRAMS" not in os.environ, reason="SHEAFNN_PROGRAMS is not set")
def test_laplacian_of_a_file(tmp_path, monkeypatch):
    programs = pathlib.Path(os.environ["SHEAFNN_PROGRAMS"])
    monkeypatch.chdir(tmp_path)
    graph = ["--dataset", "karate"]
    train = ["train", *graph, "--stalk-dim", "3", "--splits", "0", "--epochs", "20", "--save", "m.safetensors"]
    predict = ["predict", *graph, "--model", "m.safetensors", "--sheaf", "sheaf.npz", "--output", "classes.csv"]
    for program, *arguments in (train, predict):
        subprocess.run([programs / program, *arguments], check=True, stdout=subprocess.DEVNULL)
    names = {}
    exec(compile(with_file, "block", "exec"), names)
    sheaf = sheafnn.SheafClassifier.load("m.safetensors").learned_sheaf(sheafnn.karate_club())
    expected = sheaf.laplacian("none").toarray()
    assert np.abs(names["L"].reshape(expected.shape) - expected).max() < 1e-5 * np.abs(expected).max()

def test_there_are_blocks():
    assert len(blocks) >= 8
    assert sum(output is not None for block in blocks for _, output in block.values[0]) >= 20


def test_the_table_of_engines_names_classes():
    """The columns Python and PyTorch of docs/networks.md; every network has a row."""
    text = (root / "docs/networks.md").read_text(encoding="utf-8")
    table = text.split("<!-- table engines -->")[1].split("<!-- end")[0].strip().splitlines()[2:]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|")] for row in table]
    assert len(rows) >= 13
    torch_names = re.search(r"__all__ = \[(.*?)\]", (root / "python/sheafnn/torch/__init__.py").read_text(encoding="utf-8"), re.DOTALL)
    for row in rows:
        assert set(row[8]) <= set(sheafnn.__all__)
        assert set(row[9]) <= set(re.findall(r'"(\w+)"', torch_names[1]))
