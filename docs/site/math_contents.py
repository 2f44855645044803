#!/usr/bin/env python3
"""usage: math_contents.py [--check]   writes the sections of docs/math/ into docs/math.md, in the order of their numbers, each with
its page and its equations. With --check nothing is written; the program fails where the page differs."""

import pathlib
import re
import sys

docs = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- sections -->\n", "<!-- end of sections -->\n"


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections():
    """(number as a key, heading, page, its title, numbers of the equations), in the order of the numbers."""
    found = []
    for page in sorted((docs / "math").glob("*.md")):
        title = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            heading = re.match(r"(#+) +(([0-9]+\.)+[0-9]*) +(.*)", line)
            if line.startswith("# "):
                title = line[2:]
            if heading:
                key = [int(part) for part in heading[2].split(".") if part]
                found.append((key, f"{heading[2]} {heading[4]}", page.name, title, []))
            elif found:
                found[-1][-1].extend(re.findall(r"\\tag\{([0-9.]+)\}", line))
    return sorted(found)


def contents():
    lines = ["| section | page | equations |", "| --- | --- | --- |"]
    for key, heading, page, title, numbers in sections():
        about = numbers[0] if numbers else ""
        if len(numbers) > 1:
            about += f" {'and' if len(numbers) == 2 else 'to'} {numbers[-1]}"
        text = f"[{heading}](math/{page}#{anchor(heading)})"
        lines.append(f"| {text if len(key) > 1 else f'**{text}**'} | {title} | {about} |")
    return "\n" + "\n".join(lines) + "\n\n"


def main():
    page = docs / "math.md"
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit("math_contents.py: docs/math.md has no place for the sections")
    head, rest = text.split(BEGIN)
    made = head + BEGIN + contents() + END + rest.split(END)[1]
    if sys.argv[1:] == ["--check"]:
        if made != text:
            sys.exit("docs/math.md: the sections differ from docs/math/; run docs/site/math_contents.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
