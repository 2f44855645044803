"""Complete networks as one module each. Their state_dict has the names and numbers of the library's checkpoints."""

from __future__ import annotations

import os
import textwrap
from typing import Any, Mapping

import numpy as np
import torch
from torch import Tensor

from .. import _checks, _core
from .._estimator import check_names
from ._architectures import describe
from ._graphs import Graph, Hypergraph, Relations
from ._modules import KlModule, check_dtype, check_features, own_precision, rate, refuse

__all__ = [
    "BayesianBunn",
    "BayesianSheafFlow",
    "BayesianSheafHyperGnn",
    "BconnNsd",
    "Bcsnn",
    "Bsnn",
    "BsnnAround",
    "BsnnGiven",
    "Bunn",
    "ConnNsd",
    "Csnn",
    "Nsd",
    "NsdGiven",
    "SheafFlow",
    "SheafHyperGnn",
    "Snn",
]

#: what checkpoints say of a model besides its options
_ABOUT = {"format", "format_version", "sheafnn_version", "model", "posterior", "maps", "stalk_dimension"}
#: what checkpoints say of the meaning of features and outputs, which a further training does not change
_MEANING = ("class_names", "class_kind", "class_dtype", "class_data", "feature_names", "trained_with_edges", "targets", "target_names",
            "target_axes", "target_loss", "target_mean", "target_scale", "base_rates")
_DTYPES = {"F32": torch.float32, "F64": torch.float64}


class _Network(KlModule):
    """Computes the outputs of every node, for a loss of PyTorch. Features are data and have no gradient.

    :param in_channels: number of features p, at least 1
    :param classes: number of outputs of a node
    :param stalk_dim: stalk dimension, 1 to 5; cooperative and bundle networks have 2 to 5, networks on hypergraphs 2 to 4
    :param channels: number of feature channels per stalk coordinate, 1 to 1024
    :param layers: number of diffusion layers, 1 to 64; flows have ``time`` instead
    :param dropout, input_dropout: dropout rates of hidden features and of features in training, in [0, 1)
    :param seed: seed of initial values, noise and dropout; None: PyTorch's generator gives them
    :param dtype: dtype of the parameters, ``torch.float32`` or ``torch.float64``; None: PyTorch's default
    :param options: further options of the network, by name (docs/options.md)
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _kind = ""
    _index = "edge_index"
    _model: Any = _core.Model  #: the library's class of trained ones
    _meaning: Mapping[str, str] = {}  #: of a loaded network, the notes of its file

    def _start(
        self,
        in_channels: int,
        classes: int,
        maps: str,
        stalk_dim: int,
        options: dict[str, Any],
        dropout: float,
        input_dropout: float,
        seed: int | None,
        dtype: torch.dtype | None,
    ) -> None:
        if options.get("edge_features", 0) not in (0, "0"):
            refuse(options, ("edge_features",), f"{self._index} carries no features of arcs")
        for name in ("edge_types", "node_types", "stalks", "edge_stalks"):
            if options.get(name):
                refuse(options, (name,), f"{self._index} carries no types")
        p = _checks.whole("in_channels", in_channels, 1, 2**31 - 1)
        count = _checks.whole("classes", classes, 1, 2**31 - 1)
        d = _checks.whole("stalk_dim", stalk_dim, 1, 8)
        of = describe(self._kind, maps, d, layer=False, features=p, classes=count, options=options)
        KlModule.__init__(self, of, seed, dtype)
        self.in_channels, self.classes = p, count
        self._columns_of_x = self.to_model().given_columns if of.planned else p
        self.dropout, self.input_dropout = rate("dropout", dropout), rate("input_dropout", input_dropout)

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        """
        :param x: n x in_channels. NaN marks a missing value, where the network was loaded from a file and knows their treatment.
            Indicators of missing values count among in_channels, but not among the columns of x
        :param edge_index: 2 x m, both directions of every edge, or a :class:`Graph`
        :returns: n x classes, raw outputs
        """
        return self._outputs(x, edge_index)

    def _outputs(self, x: Tensor, relations: Tensor | Relations) -> Tensor:
        x = own_precision(x, self.dtype)
        check_features(x, self._columns_of_x, relations, self.dtype)
        if x.requires_grad:
            layer = "SheafHypergraphConv" if self._architecture.relations == "hypergraph" else "SheafConv"
            raise ValueError(f"x: a tensor with gradient is not allowed; features of networks are data, use {layer}")
        output, self._last_kl = self._run(x, relations, self._sheaf(relations), self.dropout, self.input_dropout)
        return output

    def _sheaf(self, relations: Tensor | Relations) -> tuple[Tensor, ...]:
        """The tensors of the maps, where they are given."""
        return ()

    def to_model(self) -> Any:
        """The trained model as an object of the library, for ``predict``, ``save`` and pickle."""
        dtype = self.dtype
        check_dtype("the module's parameters", dtype)
        metadata = {**self._meaning, **self._architecture.core(dtype == torch.float64).metadata}
        text = "F64" if dtype == torch.float64 else "F32"
        tensors = [
            (name, text, list(value.shape), value.detach().cpu().contiguous().numpy().tobytes())
            for name, value in ((name, self._named(name)) for name in self._architecture.shapes)
        ]
        model = self._model.__new__(self._model)
        model.__setstate__((metadata, tensors))
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, which the programs and ``load`` read.

        :raises ValueError: a parameter is not finite, as a training that diverged leaves it; the file stays as it was
        """
        for name in self._architecture.shapes:
            value = self._named(name).detach()
            bad = torch.isfinite(value).logical_not().nonzero()
            if len(bad):
                place = bad[0].tolist()
                raise ValueError(f"{name}[{', '.join(map(str, place))}]: {float(value[tuple(place)])} is not allowed; must be finite")
        self.to_model().save(os.fspath(path), {})

    @classmethod
    def _more(cls, tensors: list[Any]) -> dict[str, Any]:
        """Arguments that the shapes of a checkpoint's tensors say."""
        return {}

    @classmethod
    def load(cls, path: str | os.PathLike[str], **arguments: Any) -> Any:
        """A network from a checkpoint of the library. ``save`` keeps the names of classes and features and the scales of targets.

        :param arguments: ``dropout``, ``input_dropout`` and ``seed``, which files do not hold
        :raises ValueError: the checkpoint holds another kind of network on the same relations, or an argument is not allowed
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        check_names(arguments, ("dropout", "input_dropout", "seed"))
        model = cls._model.load(os.fspath(path))
        if model.kind != cls._kind:
            raise ValueError(f"path: {os.fspath(path)!r} holds the network {model.kind}, not {cls._kind}")
        metadata, tensors = model.__getstate__()
        make: Any = cls
        known = set(describe_options(cls._kind, model))
        options = {key: text for key, text in metadata.items() if key in known}
        first = tensors[0][1]
        place: dict[str, Any] = dict(stalk_dim=model.stalk_dimension, **cls._more(tensors))
        if not _core.own_maps(cls._kind):
            place["maps"] = model.maps
        features, classes = int(options.pop("features")), int(options.pop("classes"))
        r = make(features, classes, **place, dtype=_DTYPES[first], **arguments, **options)
        r._meaning = {key: metadata[key] for key in _MEANING if key in metadata}
        r.load_state_dict(
            {
                name: torch.from_numpy(np.frombuffer(data, np.float64 if kind == "F64" else np.float32).copy()).reshape(shape)
                for name, kind, shape, data in tensors
            }
        )
        return r


def describe_options(kind: str, model: Any) -> list[str]:
    """The names of a network's options."""
    maps = _core.own_maps(kind) or model.maps
    of = describe(kind, maps, model.stalk_dimension, layer=False, features=1, classes=1, options={})
    return [key for key in of.narrow.metadata if key not in _ABOUT]


class _PairNetwork(_Network):
    """Its maps are of a family."""

    def __init__(
        self,
        in_channels: int,
        classes: int,
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        self._start(in_channels, classes, maps, stalk_dim, options, dropout, input_dropout, seed, dtype)


class _GivenNetwork(_PairNetwork):
    """Its maps are given with the graph."""

    def forward(self, x: Tensor, edge_index: Graph) -> Tensor:  # type: ignore[override]
        """
        :param x: as in :class:`Nsd`
        :param edge_index: a :class:`Graph` with a sheaf of the network's maps and stalk dimension. A further graph has a sheaf of its
            own
        :returns: n x classes, raw outputs
        """
        return self._outputs(x, edge_index)

    def _sheaf(self, relations: Any) -> tuple[Tensor, ...]:
        if isinstance(relations, Graph) and relations._sheaf:
            return relations._sheaf
        what = "a Graph without a sheaf" if isinstance(relations, Graph) else f"a {type(relations).__name__}"
        raise ValueError(
            f"edge_index: {what} is not allowed; the maps of {self._kind} are given: sheafnn.torch.Graph(edge_index, sheaf=...)"
        )


class _AroundNetwork(_GivenNetwork):
    """Its maps are drawn around given ones."""

    @property
    def label_count(self) -> int:
        """The number of labels of edges, each of which has a spread; 0: a learner predicts the spreads."""
        return int(self._architecture.options.get("label_count", 0))

    def _sheaf(self, relations: Any) -> tuple[Tensor, ...]:
        r = super()._sheaf(relations)
        if r[2].numel() and self.label_count == 0 and "deviation" not in self._architecture.options:
            count = int(r[2].max()) + 1
            raise ValueError(
                f"label_count: 0 is not allowed; the graph has edge_labels: give the network label_count={count}, or leave them out"
            )
        return r

    @classmethod
    def _more(cls, tensors: list[Any]) -> dict[str, Any]:
        return {"label_count": shape[0] for name, _, shape, _ in tensors if name == "sheaf.dispersion"}


class _HypergraphNetwork(_PairNetwork):
    """It works on a hypergraph."""

    _index = "hyperedge_index"
    _model = _core.HypergraphModel

    def forward(self, x: Tensor, hyperedge_index: Tensor | Hypergraph) -> Tensor:  # type: ignore[override]
        """
        :param x: as in :class:`Nsd`
        :param hyperedge_index: 2 x nnz: each column has a node and a hyperedge that the node belongs to; or a :class:`Hypergraph`
        :returns: n x classes, raw outputs
        """
        return self._outputs(x, hyperedge_index)


class _OwnMapsNetwork(_Network):
    """Its maps are of a kind of their own."""

    def __init__(
        self,
        in_channels: int,
        classes: int,
        stalk_dim: int = 3,
        *,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        self._start(in_channels, classes, _core.own_maps(self._kind), stalk_dim, options, dropout, input_dropout, seed, dtype)


def _documented(what: str, more: str = "") -> str:
    """:param more: the text of a parameter before the seed"""
    lines = textwrap.wrap(what, 120, break_on_hyphens=False)
    return "\n    ".join(lines) + "\n\n    " + (_Network.__doc__ or "").replace(":param seed:", more + ":param seed:")


_NO_MAPS = " Checkpoints have no given maps."
_LABELS = """:param label_count: number of labels of edges, 0 to 1048576: edges of one label have one spread, and the graph has
        ``edge_labels``. 0: a learner predicts the spreads
    """


class Nsd(_PairNetwork):
    __doc__ = _documented(
        "Neural sheaf diffusion: restriction maps are functions of the features. The option ``layer`` is the equation of the "
        "layers: diffusion, convolution, wave, attention, copresheaf or directed."
    )
    _kind = "nsd"


class Bsnn(_PairNetwork):
    __doc__ = _documented(
        "Bayesian sheaf neural network: restriction maps are drawn in every call from a learned distribution. It has the "
        "layers of Nsd."
    )
    _kind = "bsnn"


class SheafFlow(_PairNetwork):
    __doc__ = _documented(
        "Continuous-time sheaf diffusion. With the method dormand-prince, gradients are exact for the steps that a pass has "
        "taken."
    )
    _kind = "flow"


class BayesianSheafFlow(_PairNetwork):
    __doc__ = _documented("Continuous-time diffusion over a sheaf that is drawn in every call.")
    _kind = "bflow"


class Snn(_GivenNetwork):
    __doc__ = _documented(
        "Sheaf neural network: convolutions on a sheaf that comes with the :class:`Graph` (math: \"Convolutions on given sheaves\")."
        + _NO_MAPS
    )
    _kind = "snn"


class NsdGiven(_GivenNetwork):
    __doc__ = _documented("The layers of Nsd on a sheaf that comes with the :class:`Graph`." + _NO_MAPS)
    _kind = "nsd-given"


class BsnnGiven(_AroundNetwork):
    __doc__ = _documented(
        "The convolutions of Snn on sheaves that are drawn around a given one in every call. The option ``deviation`` says what "
        "decides their distributions." + _NO_MAPS,
        _LABELS,
    )
    _kind = "bsnn-given"


class BsnnAround(_AroundNetwork):
    __doc__ = _documented(
        "The layers of Nsd on sheaves that are drawn around a given one in every call (math: \"Around given maps\")." + _NO_MAPS,
        _LABELS,
    )
    _kind = "bsnn-around"


class SheafHyperGnn(_HypergraphNetwork):
    __doc__ = _documented(
        "Sheaf hypergraph network: the map of every node and hyperedge that it belongs to is a function of the features. With "
        "``laplacian=\"nonlinear\"`` it is SheafHyperGCN."
    )
    _kind = "shgnn"


class BayesianSheafHyperGnn(_HypergraphNetwork):
    __doc__ = _documented("Sheaf hypergraph network whose maps are drawn in every call from a learned distribution.")
    _kind = "bshgnn"


class Csnn(_OwnMapsNetwork):
    __doc__ = _documented("Cooperative sheaf network: maps of nodes, as sources and as targets.")
    _kind = "csnn"


class Bcsnn(_OwnMapsNetwork):
    __doc__ = _documented("Cooperative sheaf network whose maps are drawn in every call.")
    _kind = "bcsnn"


class ConnNsd(_OwnMapsNetwork):
    __doc__ = _documented(
        "Diffusion on a connection, the orthogonal maps that align the directions in which features vary. It is computed once "
        "for a graph and its features."
    )
    _kind = "conn-nsd"


class BconnNsd(_OwnMapsNetwork):
    __doc__ = _documented("Diffusion over maps that are drawn around a connection in every call.")
    _kind = "bconn-nsd"


class Bunn(_OwnMapsNetwork):
    __doc__ = _documented("Bundle network: a rotation of every node in each of several vector bundles.")
    _kind = "bunn"


class BayesianBunn(_OwnMapsNetwork):
    __doc__ = _documented("Bundle network whose rotations are drawn in every call.")
    _kind = "bbunn"
