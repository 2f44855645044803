"""The code blocks of docs/python.md run."""

import pathlib
import re

import pytest

page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", blocks, ids=[f"block {i}" for i in range(len(blocks))])
def test_block(block):
    exec(compile(block, str(page), "exec"), {})


def test_there_are_blocks():
    assert len(blocks) >= 5
