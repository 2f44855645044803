"""Random tables through every door; fuzz_tables.py goes on for longer."""

import dataclasses

import fuzz_tables
import pytest


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_readings_agree(first):
    assert [text for seed in range(first, first + 50) for text in fuzz_tables.check(seed)] == []


def test_tables_are_of_many_kinds():
    tables = [fuzz_tables.make_table(seed) for seed in range(400)]
    assert {table.kind for table in tables} == set(fuzz_tables.LABELS)
    assert len({table.fault for table in tables}) == 10
    assert len({tuple(table.header or ()) for table in tables}) == len(fuzz_tables.HEADERS)


@pytest.mark.parametrize("part", ["labels", "features", "splits", "edges"])
def test_a_wrong_reading_is_seen(monkeypatch, part):
    def read(table):
        other = dataclasses.replace(table)
        if part == "labels":
            known = [u for u, label in enumerate(table.labels) if label not in ("", "-1")]
            other.labels = ["" if u == known[0] else label for u, label in enumerate(table.labels)]
        elif part == "features":
            other.features = {name: column[::-1] for name, column in table.features.items()}
        elif part == "splits":
            other.splits = [["train"] * len(table.names)] + table.splits[1:]
        else:
            other.edges = table.edges + [(table.names[0], table.names[-1])]
        return fuzz_tables.read_numpy(other)

    monkeypatch.setitem(fuzz_tables.DOORS, "numpy", read)
    tables = [fuzz_tables.make_table(seed) for seed in range(100)]
    seen = [bool(fuzz_tables.differences(table)) for table in tables if table.fault == "none" and table.splits]
    assert len(seen) > 10 and sum(seen) > len(seen) / 2
