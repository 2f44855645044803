#!/usr/bin/env python3
"""usage: check_reference.py   does docs/reference.md have every public Python name, each once?

Public is what a module's __all__ lists. `automodule` has the names of its module. Reads texts only: nothing is imported."""

import ast
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
package = root / "python" / "sheafnn"


def listed(path: pathlib.Path) -> list[str]:
    """What __all__ of a file lists."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in statement.targets):
            return ast.literal_eval(statement.value)
    return []


def public_names() -> dict[str, set[str]]:
    """The names of each module but those that are modules."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for name in listed(path):
            is_module = (path.parent / name).is_dir() or (path.parent / f"{name}.py").is_file()
            if path.name != "__init__.py" or not is_module:
                names.setdefault(module, set()).add(name)
    # A package shows the names of its parts: they are there once.
    for module in list(names):
        above = names.get(module.rpartition(".")[0], set())
        names[module] -= above if names[module] <= above else set()
    return names


def main() -> int:
    module, on_page, problems = "", {}, []
    for kind, value in re.findall(r"^\.\. (\S+?):: (\S+)", (root / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE):
        if kind in ("currentmodule", "automodule"):
            module = value
        if kind == "automodule":
            on_page[module] = set(listed(package.parent.joinpath(*module.split(".")).with_suffix(".py")))
        elif kind.startswith(("auto", "py:")):
            if value in on_page.setdefault(module, set()):
                problems.append(f"{module}.{value} is there twice")
            on_page[module].add(value)
    names = public_names()
    for module in sorted(names.keys() | on_page.keys()):
        has, shows = names.get(module, set()), on_page.get(module, set())
        problems += [f"{module}.{name} is not there" for name in sorted(has - shows)]
        problems += [f"{module}.{name} is in no __all__" for name in sorted(shows - has)]
    for problem in problems:
        print(f"docs/reference.md: {problem}")
    print(f"{sum(map(len, names.values()))} public Python names, {len(problems)} problems")
    return bool(problems) or not names


if __name__ == "__main__":
    sys.exit(main())
