"""Layers: graph convolutions with learned sheaves, a diffusion with given maps, a learner of maps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _checks, _core
from . import _operators
from ._architectures import _INPUT, _OUTPUT, describe
from ._graphs import Graph, Hypergraph, Relations
from ._modules import KlModule, Module, check_features, own_precision, rate, refuse

__all__ = [
    "BayesianCooperativeSheafConv",
    "BayesianSheafConv",
    "BayesianSheafHypergraphConv",
    "CooperativeSheafConv",
    "PolynomialSheafConv",
    "SheafConv",
    "SheafDiffusion",
    "SheafHypergraphConv",
    "SheafLearner",
]


#: options of layers that draw something themselves
_DRAWN = ("random_attention", "random_phases")


def _is_on(options: dict[str, Any], name: str) -> bool:
    """Whether an option, which may be a text, is set to another value than off."""
    return options.get(name) not in (None, False, "false")


def _coordinates(stalk_dim: int, options: dict[str, Any]) -> int:
    """The stalk coordinates, of complex features with their real and their imaginary parts."""
    own = stalk_dim + _is_on(options, "add_lp") + _is_on(options, "add_hp")
    return 2 * own if options.get("layer") == "directed" else own


def _channels(name: str, width: int, stalk_dim: int, options: dict[str, Any]) -> int:
    """The channels of this many values per node."""
    d = _coordinates(stalk_dim, options)
    if width % d != 0:
        raise ValueError(f"{name}: {width} is not allowed; must be a multiple of {d}, the number of stalk coordinates")
    return width // d


class _Convolution(Module):
    """A linear layer, one layer of a network, and an activation."""

    _kind = ""
    #: options of networks that a layer does not have
    _refused: tuple[str, ...] = ()

    def _start(
        self,
        in_channels: int,
        out_channels: int,
        maps: str,
        stalk_dim: int,
        act: str,
        dropout: float,
        seed: int | None,
        dtype: torch.dtype | None,
        options: dict[str, Any],
    ) -> None:
        refuse(options, ("channels",), "out_channels decides it")
        refuse(options, ("layers", *self._refused), "it is an option of whole networks")
        if not isinstance(self, KlModule):
            drawn = {name: options[name] for name in _DRAWN if _is_on(options, name)}
            refuse(drawn, _DRAWN, "it has a KL term, which BayesianSheafConv and networks give")
        self.in_channels = _checks.whole("in_channels", in_channels, 1, 2**31 - 1)
        self.out_channels = _checks.whole("out_channels", out_channels, 1, 2**31 - 1)
        own = _checks.whole("stalk_dim", stalk_dim, 1, 5)
        options["channels"] = _channels("out_channels", self.out_channels, own, options)
        options["layers"] = 1
        if self._kind in ("bsnn", "bshgnn"):
            options["separate_encoder"] = False
        of = describe(self._kind, maps, own, layer=True, features=self.in_channels, classes=1, options=options)
        Module.__init__(self, of, seed, dtype, _OUTPUT)
        self.act = _operators.check_activation("act", act)
        self.dropout = rate("dropout", dropout)

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        """
        :param x: n x in_channels
        :param edge_index: 2 x m, both directions of every edge, or a :class:`Graph`
        :returns: n x out_channels
        """
        return self._pass(x, edge_index)[0]

    def _pass(self, x: Tensor, relations: Tensor | Relations) -> tuple[Tensor, Any]:
        of = self._architecture
        weight, bias = self._named(_INPUT[0]), self._named(_INPUT[1])
        x = own_precision(x, weight.dtype)
        check_features(x, self.in_channels, relations, weight.dtype)
        columns = self._columns(relations)
        traced = _operators.is_traced(x)
        noise = self._next_noise(of.draws or (self.training and (self.dropout > 0 or of.drops)), traced)
        return _operators.run_convolution(
            of.text, columns, x, weight, bias, [self._named(name) for name in of.names], noise, self.dropout,
            self.training, self.act,
        )

    def extra_repr(self) -> str:
        of = self._architecture
        return f"{self.in_channels}, {self.out_channels}, maps={of.maps!r}, stalk_dim={of.stalk_dim}"


class _Drawn(_Convolution, KlModule):
    """A convolution whose maps are drawn in every call."""

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        output, self._last_kl = self._pass(x, edge_index)
        return output


class _FamilyConvolution(_Convolution):
    """Its maps are of a family."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        act: str = "identity",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        self._start(in_channels, out_channels, maps, stalk_dim, act, dropout, seed, dtype, options)


class SheafConv(_FamilyConvolution):
    """A graph convolution: a linear layer, a sheaf learned from its output, and one diffusion over this sheaf,

    X' = act((1 + tanh ε) ∘ H − ELU(Δ_F (I ⊗ A) H Bᵀ)),  H = x Wᵀ + b,  F = maps(H),

    from ``in_channels`` features of every node to ``out_channels``, which are (stalk coordinate, channel) pairs, channels
    innermost. Source: Neural Sheaf Diffusion (Bodnar et al.), math: "The model" (3.6).

    :param in_channels: number of input features p, at least 1
    :param out_channels: number of output features, a multiple of the number of stalk coordinates: stalk_dim, and one more for each
        of ``add_lp`` and ``add_hp``. With ``layer="directed"`` it is a multiple of twice that number: every stalk coordinate has its
        real parts, then its imaginary parts
    :param maps: ``"special-orthogonal"``, ``"diagonal"``, ``"general-linear"`` or ``"identity"``
    :param stalk_dim: stalk dimension, 1 to 5
    :param act: activation of the output: ``"identity"``, ``"elu"``, ``"gelu"``, ``"relu"``, ``"tanh"`` or ``"sigmoid"``. It is
        faster here than after the call
    :param dropout: dropout rate in training of the features that the diffusion mixes, in [0, 1)
    :param seed: seed of initial values and dropout; None: PyTorch's generator gives them
    :param dtype: dtype of the parameters, ``torch.float32`` or ``torch.float64``; None: PyTorch's default
    :param options: options of ``ModelOptions`` in docs/options.md, by name: ``add_lp``, ``add_hp``, ``edge_weights``,
        ``learner_layers``, ``learner_width``, ``learner``, ``sheaf_activation``, ``left_weights``, ``right_weights``,
        ``activation``, ``layer_norm``, ``normalisation``, ``parametrisation``, and the options of filters. ``layer`` is the
        equation of the layer: ``"diffusion"``, ``"convolution"``, ``"wave"``, ``"attention"``, ``"copresheaf"`` or ``"directed"``,
        each with its own options. With ``"directed"``, ``edge_index`` may have edges in one direction only
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _kind = "nsd"
    _refused = ("linear", "second_linear", "readout_layers", "separate_encoder", "degree_input", "feature_treatment",
                "feature_plan", "edge_features", "use_edges", "edge_types", "node_types", "stalks", "edge_stalks")


class PolynomialSheafConv(SheafConv):
    """A :class:`SheafConv` with a polynomial of the Laplacian in place of Δ (math: "Polynomial filters").

    :param filter: basis of the polynomial, ``"chebyshev"`` or another basis of docs/options.md
    :param filter_degree: degree K of the polynomial
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        filter: str = "chebyshev",
        filter_degree: int = 8,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels, out_channels, maps, stalk_dim, filter=filter, filter_degree=filter_degree, **options
        )


class BayesianSheafConv(_Drawn, SheafConv):
    """A :class:`SheafConv` that draws its sheaf in every call, in training and in evaluation, from a distribution that the
    learner predicts. ``kl()`` is its divergence from the prior, per incidence of node and edge (paper, "variational sheaf
    learner"; math: "Posteriors").
    """

    _kind = "bsnn"


class CooperativeSheafConv(_Convolution):
    """A graph convolution whose maps live on nodes: every node sends through a map S and receives through a map T,

    X' = act(norm((1 + tanh ε) ∘ X̃ − φ(dropout(Δ_inᵀ Δ_out (I ⊗ A) X̃ Bᵀ)))),  X̃ = dropout(H),  H = x Wᵀ + b,

    where two learners compute T and S from X̃. Source: Cooperative Sheaf Neural Networks (Ribeiro et al.), math: "Cooperative
    sheaves".

    :param in_channels: number of input features p, at least 1
    :param out_channels: number of output features, a multiple of stalk_dim
    :param stalk_dim: stalk dimension, 2 to 5
    :param act: as in :class:`SheafConv`
    :param dropout: rate of the two dropouts above in training, in [0, 1)
    :param seed, dtype: as in :class:`SheafConv`
    :param options: options of ``CooperativeOptions`` in docs/options.md, by name: ``learner``, ``learner_layers``,
        ``learner_width``, ``learner_dropout``, ``conformal``, ``activation`` (φ), ``norm``, ``left_weights``, ``right_weights``,
        ``residual``, ``directed``, ``in_degree_diagonal``. Bayesian layers have ``layer_learners`` too. With ``directed``,
        ``edge_index`` may have edges in one direction only
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _kind = "csnn"
    _refused = ("readout_layers", "separate_encoder", "feature_treatment", "feature_plan")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stalk_dim: int = 3,
        *,
        act: str = "identity",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        self._start(in_channels, out_channels, _core.own_maps(self._kind), stalk_dim, act, dropout, seed, dtype, options)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, stalk_dim={self._architecture.stalk_dim}"


class BayesianCooperativeSheafConv(_Drawn, CooperativeSheafConv):
    """A :class:`CooperativeSheafConv` that draws its maps in every call, in training and in evaluation. The learners predict the
    distributions of maps from H, or with ``layer_learners`` from X̃. ``kl()`` is their divergence from the prior, per node and
    side (math: "Bayesian cooperative sheaves").
    """

    _kind = "bcsnn"


class SheafHypergraphConv(_FamilyConvolution):
    """A hypergraph convolution that replaces ``torch_geometric.nn.HypergraphConv``.

    It has a linear layer, a sheaf learned from its output, with a map for every incident pair, and one diffusion over this sheaf,

    X' = act(Y − ΔY + b),  Y = (I ⊗ A) H Bᵀ,  H = x Wᵀ + b₁,  F = maps(H),

    from ``in_channels`` features of every node to ``out_channels``, which are (stalk coordinate, channel) pairs, channels
    innermost. Source: Sheaf Hypergraph Networks (Duta et al.), math: "Hypergraphs". Hyperedges have no weights or features here.

    :param in_channels: number of input features p, at least 1
    :param out_channels: number of output features, a multiple of stalk_dim
    :param maps: ``"diagonal"``, ``"special-orthogonal"`` or ``"general-linear"``
    :param stalk_dim: stalk dimension, 2 to 4
    :param act: activation of the output, as in :class:`SheafConv`
    :param dropout: dropout rate in training of the features that the diffusion mixes, in [0, 1)
    :param seed, dtype: as in :class:`SheafConv`
    :param options: options of the library's hypergraph networks, by name: ``laplacian``, ``mediators``, ``projection``, ``update``,
        ``learner``, ``bias``, ``left_weights``, ``right_weights``, ``sheaf_activation``, ``parametrisation``, and of Bayesian layers
        ``spread`` (docs/options.md). With ``update="residual"``, X' = act((1 + tanh ε) ∘ H − ELU(ΔY + b))
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _kind = "shgnn"
    _refused = ("readout_layers", "separate_encoder", "static_sheaf", "feature_treatment", "feature_plan")

    def forward(self, x: Tensor, hyperedge_index: Tensor | Hypergraph) -> Tensor:  # type: ignore[override]
        """
        :param x: n x in_channels
        :param hyperedge_index: 2 x nnz: each column has a node and a hyperedge that the node belongs to; or a :class:`Hypergraph`
        :returns: n x out_channels
        """
        return self._pass(x, hyperedge_index)[0]


class BayesianSheafHypergraphConv(_Drawn, SheafHypergraphConv):
    """A :class:`SheafHypergraphConv` that draws its sheaf in every call, in training and in evaluation, from a distribution that
    the learner predicts. ``kl()`` is its divergence from the prior, per node and hyperedge that it belongs to.
    """

    _kind = "bshgnn"

    def forward(self, x: Tensor, hyperedge_index: Tensor | Hypergraph) -> Tensor:  # type: ignore[override]
        return super().forward(x, hyperedge_index)  # type: ignore[arg-type]


class SheafDiffusion(Module):
    """One diffusion layer over given restriction maps, with gradients with respect to maps and features,

    X' = (1 + tanh ε) ∘ X − ELU(Δ_F (I ⊗ A) X Bᵀ).

    Source: paper, sheaf diffusion layer; math: "The model" (3.6).

    :param channels: number of channels f, 1 to 1024; features are n x (d' f), channels innermost
    :param left_weights, right_weights: whether the layer has A and B
    :param activation: whether the layer has the ELU
    :param normalisation: ``"augmented"``, ``"block"``, ``"degree"`` or ``"none"``
    :param add_lp, add_hp: add a stalk coordinate with a fixed low-pass or high-pass filter; d' counts them
    :param dropout: dropout rate in training of the features that are mixed, in [0, 1)
    :param seed, dtype: as in :class:`SheafConv`
    """

    def __init__(
        self,
        channels: int,
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        left_weights: bool = True,
        right_weights: bool = True,
        activation: bool = True,
        normalisation: str = "augmented",
        add_lp: bool = False,
        add_hp: bool = False,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        own = _checks.whole("stalk_dim", stalk_dim, 1, 5)
        self._options = dict(
            channels=_checks.whole("channels", channels, 1, 1024),
            left_weights=left_weights,
            right_weights=right_weights,
            activation=activation,
            normalisation=normalisation,
            add_lp=add_lp,
            add_hp=add_hp,
        )
        of = describe("diffusion", maps, own, layer=True, features=1, classes=1, options=self._options)
        super().__init__(of, seed, dtype)
        self._weighted = describe(
            "diffusion", maps, own, layer=True, features=1, classes=1, options={**self._options, "edge_weights": True}
        )
        self.dropout = rate("dropout", dropout)

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, maps: Tensor | None = None, edge_weights: Tensor | None = None
    ) -> Tensor:
        """
        :param x: n x (d' f)
        :param edge_index: 2 x m, both directions of every edge, without self-loops and repeated columns; or a :class:`Graph` of
            such columns
        :param maps: m x d x d: for every column (u, v), the map of u into the edge. Diagonal maps are m x d, and the identity is
            None. Rotations are not checked
        :param edge_weights: (m / 2), one for each edge {u, v}, sorted by (u, v) with u < v; None: 1
        :returns: n x (d' f)
        """
        of = self._architecture if edge_weights is None else self._weighted
        x, maps, edge_weights = (own_precision(one, self.dtype) for one in (x, maps, edge_weights))
        check_features(x, of.width, edge_index, self.dtype)
        columns = self._columns(edge_index).shape[1]
        d, more = of.stalk_dim, []
        if of.map_size > 0:
            shape = (columns, d) if of.maps == "diagonal" else (columns, d, d)
            more.append(_checked("maps", maps, shape, x))
        elif maps is not None:
            raise ValueError(f"maps: a tensor is not allowed; {of.maps} maps take no tensor")
        if edge_weights is not None:
            more.append(_checked("edge_weights", edge_weights, (columns // 2,), x))
        return self._run(x, edge_index, tuple(more), self.dropout, of=of)[0]


def _checked(name: str, value: Any, shape: tuple[int, ...], x: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: {type(value).__name__} is not allowed; expected a tensor")
    if tuple(value.shape) != shape:
        raise ValueError(f"{name}: shape {tuple(value.shape)} is not allowed; must be {' x '.join(map(str, shape))}")
    if value.dtype != x.dtype:
        raise ValueError(f"{name}: {value.dtype} is not allowed; x is {x.dtype}")
    return value


class SheafLearner(Module):
    """Learns restriction maps, and edge weights for rotations, from the features of both ends of an edge. For a column (u, v) of
    ``edge_index`` it gives the map of u into the edge, chart(W [x_u ‖ x_v]) (paper, "sheaf learner").

    :param in_channels: number of input features h, a multiple of the number of stalk coordinates
    :param seed, dtype: as in :class:`SheafConv`
    :param options: ``edge_weights``, ``learner_layers``, ``learner_width``, ``learner``, ``sheaf_activation``,
        ``parametrisation``
    """

    def __init__(
        self,
        in_channels: int,
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        own = _checks.whole("stalk_dim", stalk_dim, 1, 5)
        self.in_channels = _checks.whole("in_channels", in_channels, 1, 2**31 - 1)
        options["channels"] = _channels("in_channels", self.in_channels, own, options)
        options["layers"] = 1
        of = describe("learner", maps, own, layer=True, features=1, classes=1, options=options)
        super().__init__(of, seed, dtype)

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> tuple[Tensor, Tensor | None]:
        """
        :param x: n x in_channels
        :param edge_index: as in :class:`SheafDiffusion`
        :returns: maps and edge weights as :class:`SheafDiffusion` takes them; the weights are None where the learner has none
        """
        of = self._architecture
        x = own_precision(x, self.dtype)
        check_features(x, self.in_channels, edge_index, self.dtype)
        columns = self._columns(edge_index).shape[1]
        numbers = self._run(x, edge_index)[0]
        d, size = of.stalk_dim, columns * of.map_size
        maps = numbers[:size].view((columns, d) if of.maps == "diagonal" else (columns, d, d))
        return maps, numbers[size:] if of.learns_edge_weights else None
