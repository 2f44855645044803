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
of_pages = {
    page: re.findall(r"^```python\n(.*?)^```", (root / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL) for page in pages
}
for page in pages:  # the blocks of a lesson follow each other
    if page.startswith("docs/tutorials/") and of_pages[page]:
        of_pages[page] = ["".join(of_pages[page])]
with_file = of_pages.pop("docs/learned_sheaf.md")  # reads what a program wrote
blocks = [pytest.param(block, id=f"{page} {i}") for page, of_page in of_pages.items() for i, block in enumerate(of_page)]


@pytest.mark.parametrize("block", blocks)
def test_block(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("torch", "torch_geometric"):
        if re.search(rf"^(import|from) (\w+, )*{name}\b", block, re.MULTILINE) or ".to_pyg(" in block:
            pytest.importorskip(name)
    exec(compile(block, "block", "exec"), {})


@pytest.mark.skipif("SHEAFNN_PROGRAMS" not in os.environ, reason="SHEAFNN_PROGRAMS is not set")
def test_laplacian_of_a_file(tmp_path, monkeypatch):
    programs = pathlib.Path(os.environ["SHEAFNN_PROGRAMS"])
    monkeypatch.chdir(tmp_path)
    graph = ["--dataset", "karate"]
    train = ["train", *graph, "--stalk-dim", "3", "--splits", "0", "--epochs", "20", "--save", "m.safetensors"]
    predict = ["predict", *graph, "--model", "m.safetensors", "--sheaf", "sheaf.npz", "--output", "classes.csv"]
    for program, *arguments in (train, predict):
        subprocess.run([programs / program, *arguments], check=True, stdout=subprocess.DEVNULL)
    (block,) = with_file
    names = {}
    exec(compile(block, "block", "exec"), names)
    sheaf = sheafnn.SheafClassifier.load("m.safetensors").learned_sheaf(sheafnn.karate_club())
    expected = sheaf.laplacian("none").toarray()
    assert np.abs(names["L"].reshape(expected.shape) - expected).max() < 1e-5 * np.abs(expected).max()


def test_there_are_blocks():
    assert len(blocks) >= 8
