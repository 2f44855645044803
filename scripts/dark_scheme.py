"""Gives an SVG the style sheet of examples/models/dark_scheme.hpp, so that pictures of Python have the dark scheme of the others."""

import pathlib
import re

header = pathlib.Path(__file__).resolve().parents[1] / "examples" / "models" / "dark_scheme.hpp"
style = re.search(r'"(<style>.*</style>)', header.read_text(encoding="utf-8")).group(1)


def with_dark_scheme(svg):
    end = re.search(r"<svg[^>]*>", svg).end()
    return svg[:end] + "\n" + style + svg[end:]
