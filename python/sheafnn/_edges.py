"""Edges in the forms that people have them, weights that are not a part of a graph here, and features of arcs."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import scipy.sparse

from . import _checks
from ._masks import plain


def check_weights(values: np.ndarray, place: Callable[[int], str], argument: str, more: str = "") -> None:
    """Refuses weights that are not all equal: networks have none.

    :param place: what messages call weight i
    :param more: another way out
    """
    if values.size == 0 or (values == values[0]).all():
        return
    other = int(np.flatnonzero(values != values[0])[0])
    raise ValueError(
        f"{argument}: weights that differ are not allowed, {values[0]:g} at {place(0)} and {values[other]:g} at {place(other)}; "
        f"networks learn the weights of edges. To take the edges alone, pass weights='ignore'{more}"
    )


def check_finite(values: np.ndarray, place: Callable[[int], str]) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"{place(int(bad[0]))}: {values[bad[0]]} is not allowed; a weight must be finite, not NaN or infinity")


def adjacency_edges(matrix: Any, count: int, weights: str, argument: str) -> np.ndarray:
    """The entries of a sparse n x n matrix that are not 0, after entries of one place are added up."""
    _checks.choice("weights", weights, ("refuse", "ignore"))
    if matrix.shape != (count, count):
        raise ValueError(
            f"{argument}: an adjacency matrix of shape {matrix.shape} is not allowed; must be {count} x {count}, as many as "
            "the features have rows"
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{argument}: {matrix.dtype} is not allowed; expected an adjacency matrix of numbers")

    def place(entries: Any, i: int) -> str:
        return f"row {entries.row[i]}, column {entries.col[i]}"

    _checks.sound(argument, matrix)
    raw = scipy.sparse.coo_matrix(matrix, dtype=np.float64)
    check_finite(raw.data, lambda i: f"{argument}[{raw.row[i]}, {raw.col[i]}]")
    entries = scipy.sparse.csr_matrix(raw).tocoo()  # a sum of the entries of one place
    used = entries.data != 0
    if weights == "refuse":
        between = np.flatnonzero((raw.row != raw.col) & (raw.data != 0))  # self-loops are dropped
        repeated = between.size == 0 or (raw.data[between] == raw.data[between[0]]).all()
        if not repeated:
            edges = np.flatnonzero(used & (entries.row != entries.col))
            check_weights(
                entries.data[edges], lambda i: place(entries, edges[i]), argument, ", and so does A != 0"
            )
    return np.stack([entries.row[used], entries.col[used]], axis=1).astype(np.int64)


def _numbers_of_names(array: np.ndarray, names: Sequence[str], argument: str) -> np.ndarray:
    """Node numbers of an m x 2 array of names."""
    if not names:
        raise ValueError(f"{argument}: names of nodes are not allowed without node_names; expected m x 2 node numbers")
    number = {name: i for i, name in enumerate(names)}
    pairs = np.empty(array.shape, np.int64)
    for (row, side), end in np.ndenumerate(array):
        node = number.get(end)
        if node is None:
            raise ValueError(f"{argument}[{row}, {side}]: {end!r} is not allowed; no node has this name")
        pairs[row, side] = node
    return pairs


def edge_array(
    edges: Any, count: int, names: Sequence[str] = (), weights: str = "refuse", argument: str = "edges"
) -> np.ndarray:
    """An m x 2 array of node numbers. ``edges`` is such an array, 2 x m with ``m > 2``, names, or a sparse n x n matrix."""
    if edges is None:
        return np.empty((0, 2), np.int64)
    is_table = hasattr(edges, "columns")  # a data frame, whose rows are edges even if there are two
    edges = list(edges) if hasattr(edges, "__next__") else plain(edges)
    if scipy.sparse.issparse(edges):
        return adjacency_edges(edges, count, weights, argument)
    if np.ma.is_masked(edges):
        raise ValueError(f"{argument}: a masked entry is not allowed; expected m x 2 node numbers")
    try:
        array = np.asarray(edges)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None
    if array.dtype.kind in "US" and not isinstance(edges, np.ndarray):
        array = np.asarray(edges, dtype=object)  # before NumPy makes texts of numbers
    if array.size == 0 and array.shape != ():
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or 2 not in array.shape or (is_table and array.shape[1] != 2):
        raise ValueError(
            f"{argument}: shape {array.shape} is not allowed; expected m x 2 node numbers, or a sparse adjacency matrix"
        )
    if array.shape[1] != 2:
        array = array.T
    if array.dtype == object:
        texts = [isinstance(end, str) for end in array.ravel()]
        if all(texts):
            return _numbers_of_names(array, names, argument)
        if any(texts):
            raise ValueError(f"{argument}: names and other values are not allowed together")
        if all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) for end in array.ravel()):
            array = np.array(array.tolist())
    elif array.dtype.kind in "UT":
        return _numbers_of_names(array, names, argument)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{argument}: {array.dtype} is not allowed; expected whole node numbers")
    if array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{argument}: {array.max()} is not allowed; a node number must be between 0 and {count - 1}")
    return np.ascontiguousarray(array, np.int64)


def labels_of(name: str, labels: Any, edges: int) -> np.ndarray:
    """One whole number for each edge; C++ checks the range.

    :raises ValueError: another shape, or a label that is not an integer
    """
    table = _checks.real(name, labels)
    if table.shape != (edges,):
        raise ValueError(f"{name}: shape {table.shape} is not allowed; must be ({edges},), a label for each edge")
    whole = np.abs(table) < 2**53
    whole[whole] = table[whole] == np.rint(table[whole])
    if not whole.all():
        e = int(np.argmin(whole))
        raise ValueError(f"{name}[{e}]: {table[e]} is not allowed; must be a whole number")
    return table.astype(np.int64)


def check_same_graph(name: str, data: Any, nodes: int, edges: np.ndarray) -> None:
    """
    :param name: of the argument that is on the graph of ``data``
    :param edges: of the graph that it must be on, m x 2, sorted
    :raises ValueError: another graph
    """
    own = data.edges
    for what, found, expected in (("nodes", data.node_count, nodes), ("edges", len(own), len(edges))):
        if found != expected:
            raise ValueError(f"{name}: it is on another graph, of {found} {what}; must be {expected}")
    other = (own != edges).any(axis=1)
    if other.any():
        e = int(np.argmax(other))
        texts = (f"{u} – {v}" for u, v in (own[e], edges[e]))
        raise ValueError(f"{name}: it is on another graph, whose edge {e} is {next(texts)}; must be {next(texts)}")


def of_edges(name: str, pairs: np.ndarray, values: np.ndarray, known: np.ndarray, edges: np.ndarray, unknown: Any) -> np.ndarray:
    """One value for each edge of a graph, from the pairs that list its edges.

    :param pairs: r x 2 node numbers, in any order, with repetitions; a pair of a node with itself is not an edge
    :param values: r, of the pairs
    :param known: r, whether a pair has a value
    :param edges: m x 2, as a Dataset has them
    :raises ValueError: two pairs have different values of one edge
    """
    result = np.full(len(edges), unknown, values.dtype)
    number = {(u, v): e for e, (u, v) in enumerate(edges.tolist())}
    first: dict[int, int] = {}
    for row in np.flatnonzero(known).tolist():
        u, v = sorted(pairs[row].tolist())
        if u == v:
            continue
        edge = number[u, v]
        before = first.setdefault(edge, row)
        if values[before] != values[row]:
            raise ValueError(f"{name}[{row}]: the edge of nodes {u} and {v} has another value in row {before}")
        result[edge] = values[row]
    return result


def arc_table(pairs: np.ndarray, features: Any, arcs: np.ndarray, count: int, name: str = "arc_features") -> np.ndarray:
    """Features of all arcs, 2m x k, from the features of the pairs that a graph was built from.

    :param pairs: r x 2 node numbers, in any order, with repetitions
    :param features: r x k for the listed arcs, and for their reverses where these are not listed. r x 2 x k for the listed arc and
        its reverse
    :param arcs: 2m x 2, sorted
    """
    if np.ma.is_masked(features):
        raise ValueError(f"{name}: a masked entry is not allowed; features of arcs must be finite")
    table = _checks.real(name, features)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim not in (2, 3) or len(table) != len(pairs) or (table.ndim == 3 and table.shape[1] != 2):
        raise ValueError(
            f"{name}: shape {np.shape(features)} is not allowed; must be {len(pairs)} x k, or {len(pairs)} x 2 x k "
            "for both directions, one row for each edge"
        )
    if not np.isfinite(table).all():
        place = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"{name}[{', '.join(map(str, place))}]: {table[tuple(place)]} is not allowed; must be finite")
    rows = np.arange(len(pairs))
    if table.ndim == 3:
        table = np.concatenate([table[:, 0], table[:, 1]])
        pairs, rows = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([rows, rows])
    keys = pairs[:, 0] * count + pairs[:, 1]
    listed, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    different = np.flatnonzero((table != table[first[inverse]]).any(axis=1) & (pairs[:, 0] != pairs[:, 1]))
    if different.size:
        again = different[0]
        u, v = pairs[again]
        raise ValueError(
            f"{name}[{rows[again]}]: the arc from node {u} to node {v} has other features in row {rows[first[inverse[again]]]}"
        )
    if len(listed) == 0 or len(arcs) == 0:
        return np.empty((len(arcs), table.shape[1]))
    wanted = arcs[:, 0].astype(np.int64) * count + arcs[:, 1]
    reverse = arcs[:, 1].astype(np.int64) * count + arcs[:, 0]
    at = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
    other = np.minimum(np.searchsorted(listed, reverse), len(listed) - 1)
    return np.ascontiguousarray(table[first[np.where(listed[at] == wanted, at, other)]])
