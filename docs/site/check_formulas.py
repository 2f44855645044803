#!/usr/bin/env python3
"""usage: check_formulas.py   will GitHub show the formulas of docs/ as the site does?

GitHub reads a page as Markdown first, so that what Markdown takes for its own inside $…$ (two underscores, a backslash before
punctuation, a bar in a table) is lost; $`…`$ and blocks ```math are safe. And $ is no delimiter beside a letter or digit."""

import pathlib
import re
import sys

from markdown_it import MarkdownIt

root = pathlib.Path(__file__).resolve().parents[2]
FORMULA = re.compile(r"\$`[^`]+`\$|\$[^$`]+\$")
CODE = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"


def shown(token) -> str:
    """What Markdown leaves of a text: code in its marks, line ends as they are, everything else without its markup."""
    parts = []
    for child in token.children or []:
        if child.type == "code_inline":
            parts.append(child.markup + child.content + child.markup)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        else:
            parts.append(child.content)
    return "".join(parts)


def main() -> int:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    count = displayed = bad = 0
    for path in sorted(path for folder in ("docs", "docs/tutorials", "docs/math", "docs/notebook") for path in (root / folder).glob("*.md")):
        for token in parser.parse(path.read_text(encoding="utf-8")):
            displayed += token.type == "fence" and token.info.strip() == "math"
            if token.type != "inline":
                continue
            place = f"{path.relative_to(root)}:{token.map[0] + 1}"
            # Code is no formula, and may have a $.
            text = re.sub(f"{FORMULA.pattern}|{CODE}", lambda m: "`" if m.group(1) else m.group(), token.content, flags=re.DOTALL)
            left = shown(token)
            problems = []
            for match in FORMULA.finditer(text):
                count += 1
                around = text[max(match.start() - 1, 0):match.start()] + text[match.end():match.end() + 1]
                if left.count(match.group()) < text.count(match.group()):
                    problems.append(f"Markdown changes {match.group()}; write it as $`…`$")
                elif re.search(r"\w", around):
                    problems.append(f"a letter or digit beside {match.group()}")
                elif not match.group().startswith("$`") and re.search(r"^\$\s|\s\$$|\n", match.group()):
                    problems.append(f"a space at an end of, or a line end in {match.group()}")
            if "$" in FORMULA.sub("", text):
                problems.append("a single $")
            for problem in problems:
                print(f"{place}: {problem}")
            bad += len(problems)
    print(f"{displayed} displayed formulas, {count} in texts, {bad} that GitHub would spoil")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
