"""The Python blocks of README.md and the pages run."""

import pathlib
import re

import pytest

import sheafnn

root = pathlib.Path(__file__).parents[2]
blocks = [
    pytest.param(block, id=f"{page} {i}")
    for page in ("README.md", "docs/index.md", "docs/python.md")
    for i, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", (root / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize("block", blocks)
def test_block(block):
    exec(compile(block, "block", "exec"), {"sheafnn": sheafnn})


def test_there_are_blocks():
    assert len(blocks) >= 7
