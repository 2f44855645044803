"""pandas' tables of nodes and edges as arrays."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from . import _checks, _core, _edges
from ._labels import is_unknown


@dataclasses.dataclass
class NodeTable:
    names: list[Any]
    features: np.ndarray  #: n x p
    feature_names: list[str]
    labels: Any
    splits: list[tuple[list[int], ...]]
    types: Any  #: n, or None


def _check_columns(table: Any, argument: str) -> None:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise ValueError(f"{argument}: {type(table).__name__} is not allowed; expected a pandas.DataFrame")
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{argument}: column {repeated[0]!r} appears twice")


def _column(table: Any, argument: str, parameter: str, column: Any) -> Any:
    if column not in table.columns:
        names = ", ".join(repr(own) for own in table.columns)
        raise ValueError(f"{parameter}: {argument} has no column {column!r}; it has {names}")
    return table[column]


def _numbers(table: Any, argument: str, parameter: str, columns: Sequence[Any]) -> np.ndarray:
    """Columns of numbers; missing ones are NaN."""
    arrays = []
    for column in columns:
        values = _column(table, argument, parameter, column)
        kind = getattr(values.dtype, "kind", "O")
        if kind not in "biuf":
            raise ValueError(
                f"{argument}: column {column!r} holds {values.dtype}, not numbers; name the columns that are features, "
                f"{parameter}=[…]"
            )
        arrays.append(values.to_numpy(np.float64, na_value=np.nan))
    return np.stack(arrays, axis=1) if arrays else np.empty((len(table), 0))


def _split(table: Any, column: Any) -> tuple[list[int], ...]:
    sets: tuple[list[int], ...] = ([], [], [])
    for node, word in enumerate(_column(table, "nodes", "splits", column).to_numpy(object)):
        if is_unknown(word) or (isinstance(word, str) and not word.strip()):
            continue
        number = _core.set_words.get(word.strip()) if isinstance(word, str) else None
        if number is None:
            raise ValueError(f"nodes: column {column!r}, row {node}: {word!r} is not allowed; choose train, validation (val), test, or nothing")
        sets[number].append(node)
    return sets


def node_table(nodes: Any, names: Any, label: Any, features: Any, splits: Any, types: Any = None) -> NodeTable:
    """The columns of a table of nodes by their purpose."""
    _check_columns(nodes, "nodes")
    if names is None:
        own_names = list(nodes.index)
    else:
        own_names = list(_column(nodes, "nodes", "names", names))
    for row, name in enumerate(own_names):
        if is_unknown(name):
            raise ValueError(f"nodes: row {row} has no name; {'the index' if names is None else f'column {names!r}'} must name every node")
        if not is_hashable(name):
            raise ValueError(f"nodes: row {row}: the name {name!r} is not allowed; expected a text or a number")
    if label is not None and label not in nodes.columns:
        raise ValueError(f"label: nodes has no column {label!r}; label=None means that there are no labels")
    if splits is None:
        splits = [c for c in nodes.columns if isinstance(c, str) and c.isascii() and _core.is_split_column(c)]
        splits = sorted(splits, key=lambda c: (len(c), c))
        splits = [c for c in splits if features is None or c not in features]
    elif isinstance(splits, str):
        splits = [splits]
    if isinstance(features, str):
        features = [features]
    of_nodes = None if types is None else _column(nodes, "nodes", "node_types", types)
    used = {names, label, types, *splits}
    columns = list(features) if features is not None else [c for c in nodes.columns if c not in used]
    for column in columns:
        if column in used - {None}:
            raise ValueError(f"features: column {column!r} is not allowed; it holds the names, the labels, the types or a split")
    feature_names = [str(column) for column in columns]
    _checks.texts(lambda place: f"feature_names[{place}]:", feature_names)
    _checks.different("features", feature_names)
    for column in columns if features is None else ():
        if isinstance(column, str) and _core.resembles_set_column(column):
            raise ValueError(
                f"nodes: column {column!r} looks like a part of a split, not like a feature; a column called split (or split_0, "
                "split_1, ...) holds train, validation or test, and features=[…] takes a column as it is"
            )
    if not columns:
        raise ValueError("features: nodes has no column left for features; a dataset needs at least one")
    return NodeTable(
        own_names,
        _numbers(nodes, "nodes", "features", columns),
        feature_names,
        None if label is None else nodes[label],
        [_split(nodes, column) for column in splits],
        of_nodes,
    )


def _end(edges: Any, parameter: str, column: Any) -> Any:
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and column not in edges.columns:
        if not 0 <= column < edges.shape[1]:
            raise ValueError(f"{parameter}: {column} is not allowed; edges has {edges.shape[1]} columns")
        return edges.columns[column]
    _column(edges, "edges", parameter, column)
    return column


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _constant(values: Any) -> bool:
    """Whether a column says nothing about its rows; lists say something."""
    try:
        return values.nunique(dropna=False) <= 1
    except TypeError:
        return len(values) == 0


def edge_table(
    edges: Any, names: Sequence[Any], source: Any, target: Any, arc_features: Any, weights: str, types: Any = None
) -> tuple[np.ndarray | None, np.ndarray | None, Any]:
    """Pairs of node numbers, features of arcs, and types, of a table of edges."""
    _checks.choice("weights", weights, ("refuse", "ignore"))
    if edges is None:
        return None, None, None
    _check_columns(edges, "edges")
    ends = [_end(edges, "source", source), _end(edges, "target", target)]
    if ends[0] == ends[1]:
        raise ValueError(f"target: column {ends[1]!r} is the source as well")
    of_arcs = [arc_features] if isinstance(arc_features, str) else list(arc_features)
    number = {name: node for node, name in enumerate(names)}
    pairs = np.empty((len(edges), 2), np.int64)
    for side, column in enumerate(ends):
        for row, end in enumerate(edges[column].tolist()):
            node = None if is_unknown(end) or not is_hashable(end) else number.get(end)
            if node is None:
                kind = f" ({type(end).__name__})" if names and type(end) is not type(names[0]) else ""
                like = f", whose names are like {names[0]!r}" if names else ""
                raise ValueError(f"edges: row {row}, column {column!r}: {end!r}{kind} is not allowed; it is no node{like}")
            pairs[row, side] = node
    joins = np.flatnonzero(pairs[:, 0] != pairs[:, 1])  # self-loops are dropped
    of_edges = None if types is None else _column(edges, "edges", "edge_types", types)
    others = [column for column in edges.columns if column not in ends and column not in of_arcs and column != types]
    if weights == "refuse":
        for column in others:
            values = edges[column]
            if getattr(values.dtype, "kind", "O") in "biuf":
                own = values.to_numpy(np.float64, na_value=np.nan)
                _edges.check_finite(own, lambda i: f"edges: row {i}, column {column!r}")
                _edges.check_weights(own[joins], lambda i: f"row {joins[i]}", f"edges: column {column!r}", ", and arc_features=[…] gives them to the network")
            elif not _constant(values.iloc[joins]):
                raise ValueError(
                    f"edges: column {column!r} is neither source nor target; weights='ignore' takes the edges without it"
                )
    return pairs, _numbers(edges, "edges", "arc_features", of_arcs) if of_arcs else None, of_edges
