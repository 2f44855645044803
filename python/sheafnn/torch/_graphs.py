"""Graphs and features from tensors, built once for every tensor."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from .. import _torch
from .._checks import one_type, whole
from ._architectures import Architecture, describe


class _ByTensor:
    """Values by tensors, each for as long as its tensor exists. PyTorch's WeakIdKeyDictionary is ten times slower, and there
    are lookups in every call.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, tensor: torch.Tensor) -> Any:
        entry = self._entries.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def __setitem__(self, tensor: torch.Tensor, value: Any) -> None:
        number, entries = id(tensor), self._entries

        def forget(reference: Any) -> None:
            if number in entries and entries[number][0] is reference:
                del entries[number]

        entries[number] = (weakref.ref(tensor, forget), value)


_lock = threading.RLock()
_graphs = _ByTensor()  #: edge_index: (version, nodes, _Entry)
_directed = _ByTensor()  #: the same, of graphs whose edges may be there in one direction only
_features = _ByTensor()  #: x: (version, C++ features, key)
_sparse = _ByTensor()  #: x: (version, entries that are not 0, plans of linear layers by their width)


class _Entry:
    """A graph, and the plans of layers and networks over it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.plans: dict[Any, Any] = {}


def _version(tensor: torch.Tensor) -> Any:
    """What changes with every change in place, and with ``tensor.data = …``; None where PyTorch does not count changes."""
    return None if tensor.is_inference() else (tensor._version, tensor.data_ptr(), tensor.shape)


def check_edge_index(edge_index: torch.Tensor) -> None:
    """:raises ValueError, TypeError: another shape or dtype, or a device that this build does not know"""
    if not isinstance(edge_index, torch.Tensor):
        one_type("edge_index", edge_index)
        raise TypeError(f"edge_index: {type(edge_index).__name__} is not allowed; expected a tensor or a sheafnn.torch.Graph")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"edge_index: shape {tuple(edge_index.shape)} is not allowed; must be 2 x m")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"edge_index: {edge_index.dtype} is not allowed; must be torch.int64")
    check_storage("edge_index", edge_index)


def check_storage(name: str, tensor: torch.Tensor) -> None:
    """:raises ValueError: another device than the CPU, or a sparse layout"""
    if not tensor.is_cpu:
        raise ValueError(
            f"{name}: a tensor on {tensor.device} is not allowed; this build computes on the CPU: call .cpu() first"
        )
    if tensor.layout != torch.strided:
        raise ValueError(f"{name}: a tensor of layout {tensor.layout} is not allowed; call .to_dense() first")


def entry_of(edge_index: torch.Tensor, nodes: int, directed: bool = False) -> _Entry:
    """The graph of a tensor that is there, built where it is not the one of the last call.

    :param directed: whether edges may be there in one direction only
    """
    graphs = _directed if directed else _graphs
    with _lock:
        version = _version(edge_index)
        found = graphs.get(edge_index)
        if found is not None and version is not None and found[:2] == (version, nodes):
            return found[2]
        check_edge_index(edge_index)
        columns = edge_index.detach().to(torch.int64).contiguous()
        entry = _Entry(_torch.graph(nodes, columns.shape[1], columns.data_ptr(), directed))
        if version is not None:
            graphs[edge_index] = (version, nodes, entry)
        return entry


def features_of(x: torch.Tensor) -> tuple[Any, Any]:
    """Features of a network and a key that is theirs."""
    with _lock:
        version = _version(x)
        found = _features.get(x)
        if found is not None and version is not None and found[0] == version:
            return found[1], found[2]
        rows = x.detach().contiguous()
        features = _torch.features(rows.data_ptr(), rows.dtype == torch.float64, *rows.shape)
        key = object()
        if version is not None:
            _features[x] = (version, features, key)
        return features, key


def plan_of(of: Architecture, edge_index: torch.Tensor, x: torch.Tensor) -> Any:
    """Where passes over this graph come from."""
    wide = x.dtype == torch.float64
    entry = entry_of(edge_index, x.shape[0], of.directed)
    with _lock:
        features, key = (None, None) if of.layer else features_of(x)
        plan = entry.plans.get((of.text, wide))
        if plan is None or plan[0] is not key:
            if not of.layer and not of.planned:
                _refuse_missing(x)
            plan = (key, _torch.plan(of.core(wide), entry.graph, features))
            entry.plans[of.text, wide] = plan
        return plan[1]


def _refuse_missing(x: torch.Tensor) -> None:
    """:raises ValueError: NaN, which marks missing values where a network knows their treatment"""
    missing = torch.isnan(x).nonzero()
    if len(missing):
        u, j = missing[0].tolist()
        raise ValueError(f"x[{u}, {j}]: nan is not allowed; the network has no treatment of missing values")


def _count(x: torch.Tensor, every: int) -> int:
    """The number of entries that are not 0, in every row of so many."""
    rows = x.contiguous()
    return int(_torch.count_in_rows(rows.data_ptr(), rows.dtype == torch.float64, rows.shape[0], rows.shape[1], every))


def linear_plan_of(x: torch.Tensor, width: int, share: float) -> Any:
    """Where products of sparse features with matrices of this width come from; None where more than this share of the
    entries is not 0, or one is not finite. They are counted once for every tensor.

    A tensor of which some rows have far more entries is not counted: hidden features are another tensor in every call.
    """
    with _lock:
        version = _version(x)
        found = _sparse.get(x)
        if found is None or version is None or found[0] != version:
            every = max(1, x.shape[0] // 32)
            if _count(x, every) > 4 * share * -(-x.shape[0] // every) * x.shape[1]:
                return None
            found = (version, _count(x, 1) if bool(torch.isfinite(x).all()) else x.numel(), {})
            if version is not None:
                _sparse[x] = found
        if found[1] > share * x.numel() or x.shape[0] == 0:
            return None
        plan = found[2].get(width)
        if plan is None:
            of = describe("linear", "", 1, layer=False, features=x.shape[1], classes=width, options={})
            graph = _torch.graph(x.shape[0], 0, 0, False)
            plan = found[2][width] = _torch.plan(of.core(x.dtype == torch.float64), graph, features_of(x)[0])
        return plan


class Graph:
    """An undirected graph that calls take in place of ``edge_index``; it is built once.

    Without it, the first call builds the graph of a tensor, and it is kept as long as the tensor exists unchanged.

    :param edge_index: 2 x m, node numbers; both directions of every edge. Self-loops are left out, and repeated columns count
        once
    :param num_nodes: number of nodes n; None: the largest node number plus 1
    :param directed: whether an edge may have one direction only, for layers with the option of that name
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    def __init__(self, edge_index: torch.Tensor, num_nodes: int | None = None, *, directed: bool = False) -> None:
        check_edge_index(edge_index)
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        self.num_nodes = whole("num_nodes", num_nodes, 0, 2**31 - 1)
        self.edge_index = edge_index
        self.num_edges = int(entry_of(edge_index, self.num_nodes, directed).graph.edge_count)

    def __repr__(self) -> str:
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges})"
