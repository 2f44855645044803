"""Graphs, hypergraphs and features from tensors, built once for every tensor."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Sequence

import numpy as np
import torch

from .. import _checks, _torch
from .._checks import no_adjacency, one_type, whole
from .._edges import check_same_graph, labels_of
from .._estimator import WITHOUT_CUDA
from .._masks import plain
from ..dataset import Dataset
from ..rotations import rounded_rotations
from ..sheaf import CellularSheaf
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
# A child that fork() makes while another thread has the lock would wait for that thread, which it does not have.
if hasattr(os, "register_at_fork"):  # Windows has no fork()
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_graphs = _ByTensor()  #: edge_index: (version, nodes, _Entry)
_directed = _ByTensor()  #: the same, of graphs whose edges may be there in one direction only
_hypergraphs = _ByTensor()  #: hyperedge_index: (version, nodes, _Entry)
_tables = {"graph": _graphs, "directed": _directed, "hypergraph": _hypergraphs}
_sheaves = {rotations: _ByTensor() for rotations in (False, True)}  #: maps: (version, entry of the graph, _Entry)
_features = _ByTensor()  #: x: (version, C++ features, key)
_sparse = _ByTensor()  #: x: (version, entries that are not 0, plans of linear layers by their width)


class _Entry:
    """A graph or a hypergraph, and the plans of layers and networks over it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.plans: dict[Any, Any] = {}


def _version(tensor: torch.Tensor) -> Any:
    """What changes with every change in place, and with ``tensor.data = …``; None where PyTorch does not count changes."""
    return None if tensor.is_inference() else (tensor._version, tensor.data_ptr(), tensor.shape)


def check_columns(columns: torch.Tensor, relations: str) -> None:
    """
    :param relations: what has these columns, as :attr:`Architecture.relations` says it
    :raises ValueError, TypeError: another shape or dtype, or a device that this build does not know
    """
    of = _class_of(relations)
    name = of._argument
    no_adjacency(name, columns)
    if not isinstance(columns, torch.Tensor):
        one_type(name, columns)
        raise TypeError(
            f"{name}: {type(columns).__name__} is not allowed; expected a tensor or a sheafnn.torch.{of.__name__}"
        )
    if columns.dim() != 2 or columns.shape[0] != 2:
        raise ValueError(f"{name}: shape {tuple(columns.shape)} is not allowed; must be 2 x {of._count}")
    if columns.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name}: {columns.dtype} is not allowed; must be torch.int64")
    check_storage(name, columns)


def columns_of(given: Any, relations: str) -> torch.Tensor:
    """The columns of a tensor, or of the object in its place.

    :raises ValueError, TypeError: as :func:`check_columns`
    """
    of = _class_of(relations)
    columns = getattr(given, of._argument) if isinstance(given, of) else given
    check_columns(columns, relations)
    return columns


def check_storage(name: str, tensor: torch.Tensor, devices: bool = True) -> None:
    """
    :param devices: whether CUDA devices compute what the tensor is for
    :raises ValueError: another device than the CPU and, in builds for them, CUDA devices, or a sparse layout
    """
    if not tensor.is_cpu and not (tensor.is_cuda and devices and _torch.device_kind == "cuda"):
        why = "must be on the CPU: call .cpu() first"
        if tensor.is_cuda and devices:
            why = f"{WITHOUT_CUDA}, and .cpu() moves the tensor"
        raise ValueError(f"{name}: a tensor on {tensor.device} is not allowed; {why}")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name}: a tensor of layout {tensor.layout} is not allowed; call .to_dense() first")


#: whether CPU tensors take the passes of CUDA devices: a switch for tests, in builds with SHEAFNN_TORCH_STAND_IN
stand_in = False


def device_of(x: torch.Tensor) -> int:
    """The index of the CUDA device that computes a pass over x; -1: the CPU."""
    return x.get_device() if x.is_cuda else 0 if stand_in else -1


def stream_of(x: torch.Tensor) -> int:
    """The address of the current stream of the CUDA device of a tensor; 0 where there is none."""
    return torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0


def entry_of(columns: torch.Tensor, nodes: int, relations: str = "graph") -> _Entry:
    """The graph or hypergraph of a tensor that is there, built where it is not the one of the last call.

    :param relations: as :attr:`Architecture.relations` says it
    """
    table = _tables[relations]
    with _lock:
        version = _version(columns)
        found = table.get(columns)
        if found is not None and version is not None and found[:2] == (version, nodes):
            return found[2]
        check_columns(columns, relations)
        own = columns.detach().to("cpu", torch.int64).contiguous()
        numbers = (nodes, own.shape[1], own.data_ptr())
        hypergraph = relations == "hypergraph"
        entry = _Entry(_torch.hypergraph(*numbers) if hypergraph else _torch.graph(*numbers, relations == "directed"))
        if version is not None:
            table[columns] = (version, nodes, entry)
        return entry


def features_of(x: torch.Tensor) -> tuple[Any, Any]:
    """Features of a network and a key that is theirs."""
    with _lock:
        version = _version(x)
        found = _features.get(x)
        if found is not None and version is not None and found[0] == version:
            return found[1], found[2]
        rows = x.detach().cpu().contiguous()
        features = _torch.features(rows.data_ptr(), rows.dtype == torch.float64, *rows.shape)
        key = object()
        if version is not None:
            _features[x] = (version, features, key)
        return features, key


def _with_sheaf(entry: _Entry, sheaf: Sequence[torch.Tensor], rotations: bool) -> _Entry:
    """The graph with a given sheaf, built where it is not the one of the last call.

    :param sheaf: the tensors of ``Graph._sheaf``, which come and go together
    :param rotations: whether maps of less than double precision are rounded rotations
    """
    maps, weights, labels = (one.detach().numpy() for one in sheaf)
    version, found = _version(sheaf[0]), _sheaves[rotations].get(sheaf[0])
    if found is not None and version is not None and found[:2] == (version, entry):
        return found[2]
    table = _checks.real("sheaf", rounded_rotations("sheaf", maps) if rotations else maps)
    made = _Entry(_torch.sheaf(entry.graph, table, weights, labels.astype(np.int64)))
    if version is not None:
        _sheaves[rotations][sheaf[0]] = (version, entry, made)
    return made


def plan_of(of: Architecture, columns: torch.Tensor, x: torch.Tensor, sheaf: Sequence[torch.Tensor] = ()) -> Any:
    """Where passes over this graph or hypergraph come from.

    :param sheaf: of a network with given maps, the tensors of ``Graph._sheaf``
    :raises ValueError: x is on a CUDA device that does not compute such passes
    """
    wide, device = x.dtype == torch.float64, device_of(x)
    if device >= 0 and of.kind not in _torch.device_networks:
        raise ValueError(
            f"x: a tensor on {x.device} is not allowed; this build computes {of.kind} on the CPU: call .cpu() first"
        )
    entry = entry_of(columns, x.shape[0], of.relations)
    with _lock:
        if of.given_sheaf:
            entry = _with_sheaf(entry, sheaf, of.maps == "special-orthogonal")
        features, key = (None, None) if of.layer else features_of(x)
        plan = entry.plans.get((of.text, wide, device))
        if plan is None or plan[0] is not key:
            if not of.layer and not of.planned:
                _refuse_missing(x)
            plan = (key, _torch.plan(of.core(wide, device), entry.graph, features))
            entry.plans[of.text, wide, device] = plan
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
    """The plan of products of sparse features with matrices of this width. None on CUDA devices, where more than this share of the
    entries is not 0, and where an entry is not finite. Entries are counted once for every tensor.

    A tensor of which some rows have far more entries is not counted: hidden features are another tensor in every call.
    """
    if device_of(x) >= 0:
        return None
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


class Relations:
    """A graph or a hypergraph that calls take in place of its columns; it is built once."""

    num_nodes: int
    _argument = ""  #: that has the columns
    _count = ""  #: the symbol for their number

    def _take(self, columns: torch.Tensor, num_nodes: int | None, relations: str) -> Any:
        """The C++ object.

        :param num_nodes: None: the largest node number plus 1
        """
        check_columns(columns, relations)
        if num_nodes is None:
            nodes = columns[:1] if relations == "hypergraph" else columns
            num_nodes = int(nodes.max()) + 1 if columns.numel() else 0
        self.num_nodes = whole("num_nodes", num_nodes, 0, 2**31 - 1)
        return entry_of(columns, self.num_nodes, relations).graph


class Graph(Relations):
    """An undirected graph that calls take in place of ``edge_index``; it is built once.

    Without it, the first call builds the graph of a tensor, and it is kept as long as the tensor exists unchanged.

    :param edge_index: 2 x m, node numbers; both directions of every edge. Self-loops are left out, and repeated columns count
        once
    :param num_nodes: number of nodes n; None: the largest node number plus 1
    :param directed: whether an edge may have one direction only, for layers with the option of that name
    :param sheaf: the maps for :class:`Snn`, :class:`BsnnGiven`, :class:`NsdGiven` and :class:`BsnnAround`; other modules ignore
        it. A :class:`sheafnn.CellularSheaf` on this graph, a :class:`sheafnn.Dataset` of this graph with a sheaf, an array or a
        tensor. An array has the map of u into the edge for every column (u, v), and is m x d x d. Diagonal maps are m x d. Loops
        and repeated columns are not allowed then. Sheaf and ``edge_index`` are copied. Networks normalise the sheaf themselves
    :param edge_weights: of rotations, with an array of maps: (m / 2), one for each edge {u, v}, sorted by (u, v) with u < v;
        None: 1
    :param edge_labels: (m / 2) labels from 0 on, in the same order, for networks with a ``label_count``; a Dataset has its own
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _argument, _count = "edge_index", "m"
    _sheaf: tuple[torch.Tensor, ...]  #: maps in the order of arcs, weights and labels of edges; nothing without a sheaf

    def __init__(
        self,
        edge_index: torch.Tensor,
        num_nodes: int | None = None,
        *,
        directed: bool = False,
        sheaf: Any = None,
        edge_weights: Any = None,
        edge_labels: Any = None,
    ) -> None:
        data = sheaf.data if isinstance(sheaf, CellularSheaf) else sheaf
        if num_nodes is None and isinstance(data, Dataset):
            num_nodes = data.node_count
        if sheaf is not None and isinstance(edge_index, torch.Tensor):
            edge_index = edge_index.clone()  # changes of the tensor would leave maps for other edges
        built = self._take(edge_index, num_nodes, "directed" if _checks.flag("directed", directed) else "graph")
        self.num_edges = int(built.edge_count)
        self.edge_index = edge_index
        self._sheaf = () if sheaf is None else self._checked(built, sheaf, edge_weights, edge_labels)
        for name, value in (("edge_weights", edge_weights), ("edge_labels", edge_labels)):
            if sheaf is None and value is not None:
                raise ValueError(f"{name}: not allowed without a sheaf")

    def _checked(self, built: Any, sheaf: Any, edge_weights: Any, edge_labels: Any) -> tuple[torch.Tensor, ...]:
        """Maps in the order of arcs, sorted by source and target, in their own precision; weights and labels of edges, or none."""
        columns = self.edge_index.detach().cpu().numpy()
        weights, labels = np.empty(0), np.empty(0)
        if isinstance(sheaf, (CellularSheaf, Dataset)):
            what = type(sheaf).__name__
            if edge_weights is not None:
                raise ValueError(f"edge_weights: not allowed with a {what}, which has its own")
            data = sheaf.data if isinstance(sheaf, CellularSheaf) else sheaf
            ends = np.sort(columns[:, columns[0] != columns[1]], axis=0)
            check_same_graph("sheaf", data, self.num_nodes, np.unique(ends, axis=1).T)
            if isinstance(sheaf, CellularSheaf):
                maps, weights = sheaf.maps, sheaf.edge_weights
            else:
                if edge_labels is not None:
                    raise ValueError(f"edge_labels: not allowed with a {what}, which has its own")
                if sheaf._core.given_sheaf is None:
                    raise ValueError("sheaf: a Dataset without a sheaf is not allowed; Dataset.with_sheaf gives it one")
                maps, weights, labels, _ = sheaf._core.given_sheaf
        else:
            maps, weights = self._arrays(built, columns, sheaf, edge_weights)
        if edge_labels is not None:
            labels = labels_of("edge_labels", plain(edge_labels), self.num_edges)
        # Labels as numbers of the kind that may have derivatives: the operators treat them as parameters.
        return torch.from_numpy(maps.copy()), torch.from_numpy(weights.copy()), torch.from_numpy(labels.astype(np.float64))

    def _arrays(self, built: Any, columns: np.ndarray, sheaf: Any, edge_weights: Any) -> tuple[np.ndarray, np.ndarray]:
        """Maps in the order of arcs, and weights, from arrays or tensors."""
        for name, value in (("sheaf", sheaf), ("edge_weights", edge_weights)):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                raise ValueError(f"{name}: a tensor with gradient is not allowed; given maps are data, use SheafDiffusion")
        built.require_one_column_each()
        count, own = columns.shape[1], plain(sheaf)
        maps = _checks.real("sheaf", own)
        if maps.ndim not in (2, 3) or len(maps) != count or maps.shape[1] != maps.shape[-1]:
            raise ValueError(
                f"sheaf: shape {maps.shape} is not allowed; must be {count} x d x d, a map for each column of "
                f"edge_index. Diagonal maps are {count} x d"
            )
        bad = np.argwhere(~np.isfinite(maps))
        if len(bad):
            raise ValueError(f"sheaf[{', '.join(map(str, bad[0]))}]: {maps[tuple(bad[0])]} is not allowed; must be finite")
        if getattr(own, "dtype", None) in (np.float32, np.float16):
            maps = maps.astype(own.dtype)  # of rotations, it says how well they are known
        weights = _checks.real("edge_weights", [] if edge_weights is None else edge_weights)
        if edge_weights is not None and weights.shape != (self.num_edges,):
            raise ValueError(f"edge_weights: shape {weights.shape} is not allowed; must be ({self.num_edges},), a weight for each edge")
        return maps[np.lexsort((columns[1], columns[0]))], weights

    def __repr__(self) -> str:
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


class Hypergraph(Relations):
    """A hypergraph that calls take in place of ``hyperedge_index``, built once as a :class:`Graph` is.

    :param hyperedge_index: 2 x nnz: each column has a node and a hyperedge that the node belongs to, as in PyTorch Geometric.
        Each column occurs once, in any order
    :param num_nodes: number of nodes n; None: the largest node number plus 1
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _argument, _count = "hyperedge_index", "nnz"

    def __init__(self, hyperedge_index: torch.Tensor, num_nodes: int | None = None) -> None:
        self.num_hyperedges = int(self._take(hyperedge_index, num_nodes, "hypergraph").hyperedge_count)
        self.hyperedge_index = hyperedge_index

    def __repr__(self) -> str:
        return f"Hypergraph(num_nodes={self.num_nodes}, num_hyperedges={self.num_hyperedges})"


def _class_of(relations: str) -> type[Relations]:
    return Hypergraph if relations == "hypergraph" else Graph
