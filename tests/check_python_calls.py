#!/usr/bin/env python3
"""Do the Python programs of a folder call each other's functions with arguments that these take?

usage: check_python_calls.py FOLDER...

The programs of benchmarks/ need packages and data that tests do not have, so that nothing runs them here. Of every call by
name of a function that its file, or a file of the same folder that it imports from, defines at the top level: no more
positional arguments than parameters, keywords that exist, and no parameter without default left out. Calls with * or ** are
not looked at. Exit status 1 and a line for each call that cannot work.
"""
import ast
import pathlib
import sys


def complaint(call, definition):
    """What is wrong with the arguments of a call; None if nothing."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(word.arg is None for word in call.keywords):
        return None
    parameters = definition.args
    positional = [parameter.arg for parameter in parameters.posonlyargs + parameters.args]
    named = [parameter.arg for parameter in parameters.args + parameters.kwonlyargs]
    words = [word.arg for word in call.keywords]
    if len(call.args) > len(positional) and parameters.vararg is None:
        return f"{len(call.args)} positional arguments, it takes {len(positional)}"
    for word in words:
        if word not in named and parameters.kwarg is None:
            return f"no parameter '{word}'"
        if word in positional[:len(call.args)]:
            return f"two arguments for '{word}'"
    needed = positional[:len(positional) - len(parameters.defaults)]
    needed += [parameter.arg for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults) if default is None]
    missing = [name for name in needed if name not in positional[:len(call.args)] and name not in words]
    return f"no argument for {', '.join(missing)}" if missing else None


def top_level_functions(tree):
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def names_assigned(tree):
    """Names that a function of the file takes or assigns: within it they may mean something else."""
    return ({node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)})


def check(folder):
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in sorted(folder.glob("*.py"))}
    calls = complaints = 0
    for name, tree in trees.items():
        known = top_level_functions(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                there = top_level_functions(trees[node.module])
                known.update({alias.asname or alias.name: there[alias.name] for alias in node.names if alias.name in there})
        hidden = names_assigned(tree)
        for node in ast.walk(tree):
            if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known
                    and node.func.id not in hidden):
                calls += 1
                wrong = complaint(node, known[node.func.id])
                if wrong:
                    complaints += 1
                    print(f"{folder / (name + '.py')}:{node.lineno}: {node.func.id}(): {wrong}")
    return calls, complaints


def main():
    counts = [check(pathlib.Path(folder)) for folder in sys.argv[1:]]
    calls, complaints = (sum(column) for column in zip(*counts))
    print(f"{calls} calls, {complaints} complaints")
    sys.exit(complaints > 0 or calls == 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
