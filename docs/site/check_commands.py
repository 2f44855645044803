#!/usr/bin/env python3
"""usage: check_commands.py PROGRAMS   could the commands of README.md and docs/ be typed?

Commands are the lines of ```sh blocks, and of indented blocks that begin with one of the words below. Scripts must exist and presets
be presets; options of the programs in the folder PROGRAMS must be in their --help, options of Python scripts in their text. Programs
that the folder does not have are only counted. Exit code 1: a command could not be typed, or there are none."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {"train", "predict", "explore", "links", "uncertainty", "rotations", "separation", "train_mpi", "graph_folder", "graphs",
            "large_graph"}
WORDS = PROGRAMS | {"bash", "python", "python3", "cmake", "ctest", "mpirun"}


def commands_of(line):
    """The words of each command of a line, without the variables that it sets."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    words = []
    for word in [*lexer, ";"]:
        if not re.fullmatch("[&|;<>]+", word):
            if words or not re.fullmatch(r"[A-Z_]+=.*", word):
                words.append(word)
        elif words:
            yield words
            words = []


def read_commands():
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "docs" / "tutorials").glob("*.md")),
                 *sorted((root / "docs" / "results").rglob("*.md"))]:
        fence = None
        above = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                fence = None if fence is not None else line[3:].strip()
                continue
            indented = fence is None and line.startswith("    ")
            if fence != "sh" and not indented:
                continue
            line = above + line.strip()
            above = ""
            if line.endswith("\\"):
                above = line[:-1]
                continue
            first = re.match(r"(?:[A-Z_]+=\S+ +)*(\S+)", line)
            if not first or not (first.group(1) in WORDS or first.group(1).startswith("build/")):
                continue
            for words in commands_of(line):
                yield f"{path.relative_to(root)}:{number}", words


class Commands:
    def __init__(self, programs):
        self.programs = pathlib.Path(programs)
        self.presets = {p["name"] for p in json.loads((root / "CMakePresets.json").read_text())["configurePresets"]}
        self.help = {}
        self.checked = 0
        self.missing = set()

    def options(self, program, words, portable=False):
        """Options that are not in the program's --help."""
        path = self.programs / program
        if not path.exists():
            self.missing.add(program)
            return []
        before = tuple(words[:1]) if program == "graph_folder" else ()
        if (program, before) not in self.help:
            result = subprocess.run([path, *before, "--help"], capture_output=True, text=True, check=True)
            self.help[program, before] = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", result.stdout))
        known = self.help[program, before] | ({"--cpu-level"} if portable else set())  # of programs for several levels
        self.checked += 1
        return [w for w in map(self.name, words) if w and w not in known]

    @staticmethod
    def name(word):
        match = re.match(r"--?[a-z][a-z0-9-]*", word)
        return match and match.group(0)

    def complaint(self, words):
        first, *rest = words
        program = pathlib.PurePath(first).name
        if program == "mpirun":
            at = next((i for i, w in enumerate(rest) if pathlib.PurePath(w).name in PROGRAMS), None)
            return None if at is None else self.complaint(rest[at:])
        if program in PROGRAMS:
            unknown = self.options(program, rest, "portable" in pathlib.PurePath(first).parts)
            return f"{program} has no {' '.join(unknown)}" if unknown else None
        if first in ("bash", "python", "python3"):
            if not rest or rest[0].startswith("-"):
                return None
            self.checked += 1
            if not (root / rest[0]).is_file():
                return f"there is no {rest[0]}"
            text = (root / rest[0]).read_text(encoding="utf-8")
            unknown = [w for w in map(self.name, rest[1:]) if w and w not in text]
            return f"{rest[0]} has no {' '.join(unknown)}" if unknown else None
        if first == "cmake":
            self.checked += 1
            given = [rest[i + 1] for i, w in enumerate(rest[:-1]) if w == "--preset"]
            unknown = [p for p in given if p not in self.presets]
            return f"no preset {' '.join(unknown)}" if unknown else None
        return None


def main(programs):
    commands = Commands(programs)
    failed = 0
    for place, words in read_commands():
        complaint = commands.complaint(words)
        if complaint:
            print(f"{place}: {complaint}")
            failed = 1
    print(f"{commands.checked} commands" + (f"; not built, not checked: {', '.join(sorted(commands.missing))}" if commands.missing else ""))
    return failed or commands.checked == 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
