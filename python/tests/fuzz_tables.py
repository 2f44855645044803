"""Random tables, read by the CSV reader, from_pandas and from_numpy: all readings agree, or all are refused.

usage: python fuzz_tables.py [--seconds S] [--first SEED] [--keep FOLDER]

A table has nodes with names, labels, splits and features of random kinds, and half of the tables have one fault. A
reading that disagrees is printed with its seed; ``check(seed)`` repeats it. ``--keep`` leaves its files in a folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
import tempfile
import time
import warnings
from typing import Any, Callable

import numpy as np
import pandas
import sheafnn

HEADERS = [
    None, ["source", "target"], ["from", "to"], ["u", "v"], ["node1", "node2"], ["FromNodeId", "ToNodeId"],
    ["txId1", "txId2"], ["source_id", "target_id"], ["Source", "Target"], ["src", "dst"], ["id_1", "id_2"],
]
WORDS = ["NA", "nan", "None", "null", "NaT", "#N/A", "unknown", "missing", "?", "-", "<NA>", "N/A", "NaN", "nil", "inf"]
LABELS: dict[str, list[str]] = {
    "words": ["red", "green", "blue", "Jos\u00e9", "\u674e", "a,b", 'say "x"', "two\nlines", "with blank", "0x1f", "na\u00efve"],
    "whole": ["0", "1", "2", "3", "17", "-5", "1000000007"],
    "spellings": ["1", "1.0", "01", "1e0", "2", "2.00", "+2", "3"],
    "fractions": ["0.5", "0.25", "1.5", "2", "1e-3"],
    "mixed": ["1", "1.0", "two", "3"],
    "signs": ["1", "2", "-1"],
    "booleans": ["True", "False"],
}


@dataclasses.dataclass
class Table:
    """Cells as texts, as a file has them."""

    seed: int
    names: list[str]
    labels: list[str]
    kind: str
    features: dict[str, list[str]]
    splits: list[list[str]]
    edges: list[tuple[str, str]]
    header: list[str] | None
    separator: str
    fault: str
    missing_labels: list[str] | None


def make_table(seed: int) -> Table:
    random = np.random.default_rng(seed)

    def pick(options: Any) -> Any:
        return options[int(random.integers(len(options)))]

    n = int(random.integers(4, 30))
    prefix = pick(["", "n", "user", "p-", "\u00e9", "a b "])
    names = [f"{prefix}{i}" for i in random.permutation(n)]
    kind = pick(list(LABELS))
    choices = LABELS[kind]
    labels = [pick(choices) for _ in range(n)]
    for u in np.flatnonzero(random.random(n) < pick([0, 0, 0.3])):
        labels[u] = pick(["", "-1"] if kind != "booleans" else [""])
    features: dict[str, list[str]] = {}
    for j in range(int(random.integers(1, 5))):
        column = pick(["real", "whole", "binary", "large", "small"])
        values = {
            "real": lambda: repr(float(random.normal())), "whole": lambda: str(int(random.integers(-5, 100))),
            "binary": lambda: str(int(random.integers(2))), "large": lambda: repr(float(random.normal() * 1e12)),
            "small": lambda: f"{random.normal() * 1e-9:.6e}",
        }[column]
        features[pick(["age", "height", "x", "f ", "\u00fc"]).strip() + str(j)] = [values() for _ in range(n)]
    if random.random() < 0.3:
        column = pick(list(features))
        for u in np.flatnonzero(random.random(n) < 0.3):
            features[column][u] = pick(["", "NA", "nan"])
    splits = []
    for _ in range(int(random.integers(0, 3))):
        parts = [pick(["train", "validation", "val", "test", ""]) for _ in range(n)]
        parts[int(random.integers(n))] = "train"
        splits.append(parts)
    edges = [(pick(names), pick(names)) for _ in range(int(random.integers(1, 3 * n)))]
    edges.append((names[0], names[1]))
    table = Table(seed, names, labels, kind, features, splits, edges, pick(HEADERS), pick([",", ";", "\t"]), "none", None)
    if random.random() < 0.2:
        table.missing_labels = [pick(WORDS)]
        table.labels[int(random.integers(n))] = pick(table.missing_labels + WORDS)
    if random.random() < 0.5:
        add_fault(table, random, pick)
    return table


def add_fault(table: Table, random: np.random.Generator, pick: Callable[[Any], Any]) -> None:
    n = len(table.names)
    u = int(random.integers(n))
    table.fault = pick(["word", "name", "end", "first end", "infinite", "text", "set", "continuous", "no training node"])
    if table.fault == "word":
        table.labels[u] = pick(WORDS)
    elif table.fault == "name":
        table.names[u] = table.names[(u + 1) % n]
    elif table.fault == "end":
        table.edges[int(random.integers(len(table.edges)))] = (table.names[0], "nobody")
    elif table.fault == "first end":  # no header: neither of the two is a word for the end of an edge
        table.header = None
        table.edges.insert(0, pick([("user777", "user888"), ("nobody", "noone"), ("n1001", "n1002")]))
    elif table.fault == "infinite":
        next(iter(table.features.values()))[u] = pick(["inf", "-inf", "1e999"])
    elif table.fault == "text":
        next(iter(table.features.values()))[u] = pick(["abc", "1,5", "0x10", "1_000", "1.2.3"])
    elif table.fault == "set":
        (table.splits or [table.splits.append([""] * n) or table.splits[-1]])[0][u] = pick(["trian", "2", "nan", "0"])
    elif table.fault == "continuous":
        table.labels = [repr(float(x)) for x in random.random(n)]
    elif table.splits:
        table.splits[0] = ["test" if part == "train" else part for part in table.splits[0]]


def field(text: str, separator: str) -> str:
    special = any(c in text for c in (separator, '"', "\n", "\r", ",", ";", "\t"))
    if special or (text and (text[0] == " " or text[-1] == " ")):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_folder(table: Table, folder: pathlib.Path) -> None:
    def rows(lines: list[list[str]]) -> str:
        return "".join(table.separator.join(field(cell, table.separator) for cell in line) + "\n" for line in lines)

    suffix = "tsv" if table.separator == "\t" else "csv"
    split_names = ["split"] if len(table.splits) == 1 else [f"split_{s}" for s in range(len(table.splits))]
    nodes = [["name", "label", *split_names, *table.features]]
    columns = [table.names, table.labels, *table.splits, *table.features.values()]
    nodes += [list(row) for row in zip(*columns)]
    edges = ([table.header] if table.header else []) + [list(edge) for edge in table.edges]
    (folder / f"nodes.{suffix}").write_text(rows(nodes), encoding="utf-8")
    (folder / f"edges.{suffix}").write_text(rows(edges), encoding="utf-8")


def number(text: str) -> float:
    """A feature as Python's side has it."""
    if text in ("", "NA", "nan"):
        return np.nan
    value = float(text)
    if text == "1_000":
        raise ValueError(f"features: {text} is no number")
    return value


def feature_array(table: Table) -> np.ndarray:
    return np.array([[number(cell) for cell in column] for column in table.features.values()]).T


def read_csv(table: Table) -> sheafnn.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        write_folder(table, pathlib.Path(folder))
        return sheafnn.load_dataset(folder, missing_labels=table.missing_labels)


def read_pandas(table: Table) -> sheafnn.Dataset:
    random = np.random.default_rng([table.seed, 1])
    labels: Any = list(table.labels)
    if random.random() < 0.5:
        labels = [label if label else None for label in labels]
    nodes = pandas.DataFrame({"name": table.names, "label": labels})
    for s, parts in enumerate(table.splits):
        nodes["split" if len(table.splits) == 1 else f"split_{s}"] = parts
    for name, column in zip(table.features, feature_array(table).T):
        nodes[name] = column
    edges = pandas.DataFrame(table.edges, columns=table.header or ["source", "target"])
    return sheafnn.Dataset.from_pandas(nodes, edges, names="name", missing_labels=table.missing_labels)


def read_numpy(table: Table) -> sheafnn.Dataset:
    random = np.random.default_rng([table.seed, 2])
    labels: Any = list(table.labels)
    form = random.integers(4)
    if form == 0:
        labels = np.array(labels)
    elif form == 1:
        labels = np.array([label if label else None for label in labels], object)
    elif form == 2 and table.kind in ("whole", "fractions", "spellings") and table.fault != "word" and not table.missing_labels:
        values = np.array([float(label) if label else np.nan for label in labels])
        labels = values.astype(int) if np.all(values == np.round(values)) and random.random() < 0.5 else values
        if np.array_equal(np.unique(values), [-1, 1]):  # refused as numbers: is -1 a class?
            labels = list(table.labels)
    splits = []
    for parts in table.splits:
        known = {"train": 0, "validation": 1, "val": 1, "test": 2, "": 3}
        sets = np.array([known.get(part, 4) for part in parts])
        if (sets == 4).any():  # a wrong entry of a mask
            masks = [np.where(sets == 4, np.nan, sets == k) for k in range(3)]
        else:
            masks = [sets == k for k in range(3)]
            kind = random.integers(4)
            if kind == 1:
                masks = [mask.astype(float) for mask in masks]
            elif kind == 2:
                masks = [np.flatnonzero(mask) for mask in masks]
            elif kind == 3 and len(sets) > 1:
                masks = [mask[None, :] for mask in masks]
        splits.append(tuple(masks))
    return sheafnn.Dataset.from_numpy(
        [list(edge) for edge in table.edges], feature_array(table), labels, splits=splits, node_names=table.names,
        feature_names=list(table.features), missing_labels=table.missing_labels,
    )


@dataclasses.dataclass
class Reading:
    """What a door made of a table; or why it refused it."""

    refused: str = ""
    edges: Any = None
    classes: Any = None
    codes: Any = None
    features: Any = None
    splits: Any = None
    names: Any = None


def reading(read: Callable[[Table], sheafnn.Dataset], table: Table) -> Reading:
    try:
        data = read(table)
    except (ValueError, RuntimeError) as error:
        return Reading(refused=str(error) or "without a word")
    classes = [str(name) for name in data.classes]
    try:
        classes = [repr(float(name)) for name in classes]
    except ValueError:
        pass
    return Reading(
        "", data.edges.tolist(), classes, data.codes.tolist(), [[repr(x) for x in row] for row in data.features.toarray().tolist()],
        [[part.tolist() for part in split] for split in data.splits], data.node_names,
    )


DOORS = {"CSV": read_csv, "pandas": read_pandas, "numpy": read_numpy}


def differences(table: Table) -> list[str]:
    """What the readings of a table disagree about; nothing if they agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readings = {door: reading(read, table) for door, read in DOORS.items()}
    first = readings["CSV"]
    found = []
    for door, other in readings.items():
        if "class_count: " in first.refused and not other.refused and len(other.classes) < 2:
            continue  # a file is read for a training; arrays of one class are refused by fit()
        if bool(first.refused) != bool(other.refused):
            found.append(f"CSV: {first.refused or 'read'}\n  {door}: {other.refused or 'read'}")
        for part in () if first.refused or other.refused else ("edges", "classes", "codes", "features", "splits", "names"):
            if getattr(first, part) != getattr(other, part):
                found.append(f"{part}: CSV {getattr(first, part)}\n  {door} {getattr(other, part)}")
        if other.refused and other.refused == "without a word":
            found.append(f"{door}: an error without a message")
    must_refuse = table.fault in ("name", "end", "first end", "infinite", "text", "set")
    if must_refuse and not first.refused:
        found.append(f"the fault '{table.fault}' is not refused")
    return found


def check(seed: int) -> list[str]:
    table = make_table(seed)
    found = differences(table)
    return [f"seed {seed}, labels {table.kind}, fault {table.fault}: {text}" for text in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    end, seed, bad = time.monotonic() + options.seconds, options.first, 0
    while time.monotonic() < end:
        found = check(seed)
        if found:
            bad += 1
            print("\n".join(found), flush=True)
            if options.keep:
                folder = options.keep / str(seed)
                folder.mkdir(parents=True, exist_ok=True)
                write_folder(make_table(seed), folder)
        seed += 1
    print(f"{seed - options.first} tables, {bad} with readings that disagree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
