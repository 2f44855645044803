#!/usr/bin/env python3
"""usage: check_words.py [--tables] [PAGE...]   is every page, and every text of the sources, as short as it should be?

Counts the words of prose of each page: without code, tables and displayed formulas; an inline formula is one word. Fails where a
page has more words than its budget, or no budget, where it has more than twice its budget with the words in tables, and where a
sentence has more than 25 words. Without pages it also reads the texts of the sources (code_texts.py). It fails on a docstring, a help text, a message or a comment of the C++
reference with a sentence of more than 25 words. It fails on a word that STANDARD replaces, except in comments, and on the help of an
option of more than 30 words.
--tables prints a table of all pages that have a budget: words of prose, the same with words in tables, and the budget."""

import collections
import fnmatch
import pathlib
import re
import sys

import code_texts

root = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 25  # words of a sentence
LONGEST_HELP = 30  # words of the help of an option
STANDARD = {r"(?:that|those) of": "the noun", r"(?:go|goes|going|gone|went) on": "continue", r"mend(?:s|ed)?": "correct"}
FENCE = re.compile(r" *(```+|~~~+)")

# Page, relative to the root, or a pattern: the first that fits holds. None: without a limit.
BUDGETS = {
    "README.md": 350,
    "CHANGELOG.md": 900,  # the section Unreleased
    "docs/index.md": 250,
    "docs/install.md": 350,
    # Tutorials
    "docs/tutorials.md": 350,
    "docs/tutorials/sheaves.md": 600,
    "docs/tutorials/rotations.md": 600,
    "docs/tutorials/*.md": 900,
    "docs/from_nsd_code.md": 900,
    # How-to
    "docs/data.md": 650,
    "docs/choose_a_network.md": 500,
    "docs/training.md": 1200,
    "docs/save_and_resume.md": 600,
    "docs/messages.md": 200,
    "docs/uncertainty.md": 800,
    "docs/explore.md": 700,
    "docs/graphs.md": 700,
    "docs/edges.md": 700,
    "docs/numbers.md": 700,
    "docs/large_graphs.md": 600,
    "docs/programs.md": 700,
    "docs/python.md": 900,
    "docs/torch.md": 900,
    "docs/cuda.md": 500,
    "docs/distributed.md": 700,
    # Explanation
    "docs/concepts.md": 700,
    "docs/networks.md": 1200,
    "docs/learned_sheaf.md": 700,
    "docs/given_sheaves.md": 700,
    "docs/when_a_sheaf_helps.md": 700,
    "docs/which_distribution.md": 700,
    "docs/rotations.md": 1500,
    "docs/extending.md": 3000,
    "docs/math.md": 600,
    "docs/math/*.md": 2500,
    # Reference
    "docs/formats.md": 900,
    "docs/reference.md": 300,
    "docs/cpp/*.md": 100,
    "docs/options.md": None,  # printed by scripts/option_page.cpp
    "docs/architecture.md": 700,
    "docs/paper.md": 900,
    "docs/glossary.md": 1200,
    # Evidence
    "docs/comparison.md": 450,
    "docs/performance.md": 500,
    "docs/accuracy.md": 500,
    "docs/reliability.md": 900,
    "docs/results/README.md": 700,
    "docs/results/*.md": 900,
    "docs/notebook/*": None,
}

# With the words in tables a page may have twice its budget. The tables of these pages are their content, and are looked up, not read:
# what a file may hold, what a message means, which file has an equation.
WITH_TABLES = {
    "docs/data.md": 1800,
    "docs/formats.md": 2700,
    "docs/messages.md": 900,
    "docs/architecture.md": 1900,
}

MATHEMATICS = 6  # pages of docs/math/
README = {"lines": 120, "words": 750}  # with code and tables, as wc counts them


def pages():
    names = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
    return [str(path.relative_to(root)) for path in names if "site" not in path.relative_to(root).parts]


def budget_of(page):
    for pattern, budget in BUDGETS.items():
        if fnmatch.fnmatch(page, pattern):
            return budget
    return 0


def code_lines(text):
    """Numbers of the lines of fenced blocks of code."""
    fence, numbers = None, set()
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence is not None or mark:
            numbers.add(number)
        fence = (mark and mark.group(1)) if fence is None else None if mark and line.strip() == fence else fence
    return numbers


def paragraphs(text):
    """(line number, text) of each paragraph, list item and heading; headings begin with #."""
    fence = None  # of a block of code
    lines, begin = [], 0
    in_list = blank = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = FENCE.match(line)
        if fence is not None:
            fence = None if mark and line.strip() == fence else fence
            continue
        stripped = line.strip()
        item = re.match(r"(?:[-*+]|\d+[.)]) +", stripped)
        code = line.startswith("    ") and (blank or not lines) and not in_list
        ends = mark or not stripped or stripped[0] in "#|<" or item or code
        if ends and lines:
            yield begin, " ".join(lines)
            lines = []
        if mark:
            fence = mark.group(1)
        elif stripped and stripped[0] not in "|<" and not code:
            if stripped[0] == "#":
                yield number, stripped
            else:
                begin = begin if lines else number
                lines.append(stripped[item.end():] if item else stripped)
        if stripped and not code:
            in_list = bool(item) or in_list and line.startswith(" ")
        blank = not stripped


def plain(text):
    """Without links' targets; a formula or a piece of code is one word."""
    text = re.sub(r"\$`[^`]*`\$|(?<!\\)\$[^$]+\$", "F", text)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "C", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text.lstrip("# "))


def rows(text):
    """Lines of tables, without the rules below their heads."""
    inside = code_lines(text)
    lines = enumerate(text.splitlines(), 1)
    return [line for number, line in lines if line.strip().startswith("|") and number not in inside and re.search(r"\w", line)]


def words_of(text):
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences_of(text):
    text = re.sub(r"\b(e\.g|i\.e|cf|et al|Eq|vs)\.", r"\1", text)
    return re.split(r"(?<=[.!?])[)\"”]?\s+", text)


def read(page):
    text = (root / page).read_text(encoding="utf-8")
    if page == "CHANGELOG.md":
        text = re.search(r"^## \[Unreleased\].*?(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL).group()
    return text


def faults(kind, text):
    """What is wrong with a docstring, a help text or a message, or with the length of the sentences of a comment."""
    words = plain(text)
    for sentence in sentences_of(words):
        if len(words_of(sentence)) > LONGEST:
            yield f"{len(words_of(sentence))} words: {sentence}"
    if kind == "help" and len(words_of(words)) > LONGEST_HELP:
        yield f"help of {len(words_of(words))} words: {words}"
    for word, standard in STANDARD.items() if kind != "comment" else []:
        if match := re.search(rf"\b{word}\b", words):
            yield f"'{match.group()}': write {standard}: {words}"


def check_sources():
    """The number of faulty texts of the sources, which are printed."""
    found = 0
    read = collections.Counter()
    for file, line, kind, text in code_texts.texts(root):
        read[kind] += 1
        for fault in faults(kind, text):
            found += 1
            print(f"{file}:{line}: {fault}")
    for kind in ("docstring", "help", "message", "comment"):
        if read[kind] < 100:
            print(f"code_texts.py finds {read[kind]} texts of the kind {kind}")
            found += 1
    return found


def main(arguments):
    tables = "--tables" in arguments
    chosen = [argument for argument in arguments if argument not in ("--sentences", "--tables")]  # --sentences: printed in any case
    failed = total = long = 0
    if tables:
        print("| page | prose | with tables | budget |\n| --- | ---: | ---: | ---: |")
    for page in chosen or pages():
        count = 0
        for number, text in paragraphs(read(page)):
            words = plain(text)
            count += len(words_of(words))
            for sentence in sentences_of(words) if not text.startswith("#") else []:
                if len(words_of(sentence)) > LONGEST:
                    long += 1
                    print(f"{page}:{number}: {len(words_of(sentence))} words: {sentence}")
        budget = budget_of(page)
        total += count
        most = WITH_TABLES.get(page, 2 * (budget or 0))
        with_tables = count + sum(len(words_of(plain(row))) for row in rows(read(page)))
        if tables and budget:
            print(f"| {page} | {count} | {with_tables} | {budget} |")
        elif chosen:
            print(f"{page}: {count} words of {budget}, {with_tables} with tables of {most}")
        if budget and with_tables > most:
            print(f"{page}: {with_tables} words with tables; {most} are allowed")
            failed += 1
        if budget is not None and count > budget:
            reason = f"{count} words; {budget} are its budget" if budget else "has no budget in docs/site/check_words.py"
            print(f"{page}: {reason}")
            failed += 1
    if "README.md" in (chosen or pages()):
        text = (root / "README.md").read_text(encoding="utf-8")
        for what, most in README.items():
            count = text.count("\n") if what == "lines" else len(text.split())
            if count > most:
                print(f"README.md: {count} {what} in all; {most} are allowed")
                failed += 1
    mathematics = len(list((root / "docs/math").glob("*.md")))
    if mathematics > MATHEMATICS:
        print(f"docs/math/: {mathematics} pages; {MATHEMATICS} are allowed")
        failed += 1
    print(f"{total} words, {failed} pages above their budget, {long} sentences of more than {LONGEST} words")
    if not chosen:
        faulty = check_sources()
        print(f"sources: {faulty} faults of docstrings, help, messages and comments")
        failed += faulty
    return failed + long > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
