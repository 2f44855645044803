"""Seeded tasks that need a sheaf, with the truth (docs/data.md)."""

from __future__ import annotations

import dataclasses

import numpy as np

from . import _checks, _core
from .dataset import Dataset


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PlantedTask:
    """A dataset, and the sheaf that determines its labels.

    There are C fixed directions. The class of a node is the direction nearest to the sum of its neighbours' vectors, transported
    into the node's own frame. ``planted_frames`` has a variant whose classes are drawn. The last ``stalk_dim`` columns of the
    features (the last five in ``planted_signed``) are the vectors, up to noise.
    """

    data: Dataset
    family: str  #: family of the true maps: special-orthogonal, diagonal or general-linear
    maps: np.ndarray  #: 2m x d x d, the true map of each arc of ``data.arcs``, from its source to its edge; diagonal maps are 2m x d
    concentration: np.ndarray | None  #: kappa of each of the m edges of ``planted_unreliable``, otherwise None

    @property
    def stalk_dim(self) -> int:
        return int(self.maps.shape[-1])

    @property
    def transports(self) -> np.ndarray:
        """2m x d x d: for the arc from u to v, the matrix that takes vectors at v to u. It is the transpose of u's map times v's
        map."""
        maps = self.maps if self.maps.ndim == 3 else self.maps[:, :, None] * np.eye(self.stalk_dim)
        arcs = self.data.arcs
        reverse = np.lexsort((arcs[:, 0], arcs[:, 1]))
        return np.swapaxes(maps, 1, 2) @ maps[reverse]

    def __repr__(self) -> str:
        return f"<PlantedTask: {self.data!r}, {self.family} maps, stalk dimension {self.stalk_dim}>"


def _planted(
    name: str,
    stalk_dim: int,
    *,
    nodes: int,
    classes: int,
    degree: float,
    noise: float,
    hidden_columns: int,
    splits: int,
    seed: _checks.Seed,
    spread: float = 1,
    curvature: float = 0,
    neighbour_share: float = 0,
    least_concentration: float = 0.2,
    most_concentration: float = 0.99,
) -> PlantedTask:
    core, family, maps, concentration = _core.planted(
        "planted-" + name,
        _checks.whole("stalk_dim", stalk_dim, 1 if name in ("diagonal", "signed") else 2, 5),
        _checks.whole("nodes", nodes, 0, 2**31 - 1),
        _checks.whole("classes", classes, 0, 100),
        _checks.any_number("degree", degree),
        _checks.any_number("spread", spread),
        _checks.any_number("curvature", curvature),
        _checks.any_number("neighbour_share", neighbour_share),
        _checks.any_number("noise", noise),
        _checks.whole("hidden_columns", hidden_columns, 0, 1000),
        _checks.any_number("least_concentration", least_concentration),
        _checks.any_number("most_concentration", most_concentration),
        _checks.whole("splits", splits, 0, 1000),
        _checks.seed(seed),
    )
    return PlantedTask(Dataset(core), family, maps, concentration if len(concentration) else None)


def planted_frames(
    *,
    stalk_dim: int = 3,
    nodes: int = 2000,
    classes: int = 0,
    degree: float = 8,
    spread: float = 1,
    curvature: float = 0,
    neighbour_share: float = 0,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Local frames: node u has the rotation R = exp([w]) with w ~ N(0, spread^2 I), and features (w, x).

    :param stalk_dim: stalk dimension d, 2 to 5
    :param nodes: number of nodes, at least 12, and three per class
    :param classes: number of classes, 2 to d + 1, or 2 to 100 where d is 2; 0: d + 1
    :param degree: mean degree, 1 to a quarter of the nodes; degrees differ by one at most
    :param spread: standard deviation of w, 0 to 4; the smaller it is, the better a network without a sheaf does
    :param curvature: curvature c, 0 to 4: the transport from v to u is R_u' exp(c (W_u W_v - W_v W_u)) R_v, W the skew matrix of
        w
    :param neighbour_share: probability p, 0 to 1. With 0, classes follow from transported sums. Otherwise classes are drawn, and x
        is the direction of a class. With probability p it is the class of a random neighbour, transported into the node's frame;
        otherwise it is the node's own class
    :param noise: standard deviation of the noise in the vectors among the features, 0 to 10
    :param hidden_columns: 0 to 1000; with 0 the features show w, otherwise this many columns of a random smooth map of w
    :param splits: number of stratified splits of 48/32/20
    :raises ValueError: an option is out of range; the message names the option, its value and the limit

    >>> planted_frames(nodes=500, seed=1)
    <PlantedTask: <Dataset planted-frames: 500 nodes, 2000 edges, 6 features, 4 classes, 10 splits>, special-orthogonal maps, stalk dimension 3>
    """
    return _planted("frames", **locals())


def planted_unreliable(
    *,
    stalk_dim: int = 3,
    nodes: int = 2000,
    classes: int = 0,
    degree: float = 8,
    spread: float = 1,
    least_concentration: float = 0.2,
    most_concentration: float = 0.99,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Unreliable relations: the task of ``planted_frames``, where the transport of every edge is drawn once from the Cayley
    distribution around it. The two nodes' reliabilities, which are a column of the features after w, determine the concentration.

    :param least_concentration: least concentration, from 0 to the largest one
    :param most_concentration: largest concentration, at least 0 and below 1
    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return _planted("unreliable", **locals())


def planted_geometric(
    *,
    nodes: int = 2000,
    classes: int = 0,
    degree: float = 8,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Tangent vectors on the sphere, in frames of any direction, with parallel transport between near points; d is 2. The
    features are the point, the first axis of its frame, and the vector. Nodes without neighbours have no label.

    :param classes: number of classes, 2 to 100; 0: 3
    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return _planted("geometric", 2, **locals())


def planted_diagonal(
    *,
    stalk_dim: int = 3,
    nodes: int = 2000,
    classes: int = 0,
    degree: float = 8,
    spread: float = 1,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Diagonal maps of both signs, with entries of size exp(spread z / 2), z ~ N(0, 1). The features are the diagonal and the
    vector.

    :param stalk_dim: stalk dimension d, 1 to 5
    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return _planted("diagonal", **locals())


def planted_general_linear(
    *,
    stalk_dim: int = 3,
    nodes: int = 2000,
    classes: int = 0,
    degree: float = 8,
    spread: float = 1,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Maps R diag(2^z), with R as in ``planted_frames`` and z uniform in [-1, 1]. The features are (w, z, x).

    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return _planted("general-linear", **locals())


def planted_signed(
    *,
    nodes: int = 2000,
    degree: float = 8,
    noise: float = 0,
    hidden_columns: int = 0,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> PlantedTask:
    """Signed graphs, with d = 1. Every node belongs to one of three groups. Edges within a group have the sign +1, and other
    edges -1. A node has five vectors of one number each, and there are six classes. The features are the group, as three columns
    of 0 and 1, and the five numbers.

    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return _planted("signed", 1, classes=0, **locals())
