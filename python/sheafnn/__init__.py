"""Sheaf neural networks, deterministic and Bayesian, for node classification on graphs; and distributions of rotations.

>>> import sheafnn
>>> data = sheafnn.planted_frames(nodes=1000, stalk_dim=2).data
>>> model = sheafnn.SheafClassifier(maps="special-orthogonal", stalk_dim=2).fit(data, split=0)
>>> float(model.score(data)) > 0.75
True
"""

from ._level import cpu_level  # the first: the others import the module that it chooses
from . import plot, rotations, uncertainty
from ._core import EpochReport
from ._core import version as __version__
from .classifier import Interrupted, SheafClassifier, Uncertainty, UnusedSheaf
from .dataset import Dataset, GivenSheaf, Split, karate_club, load_dataset, synthetic
from .graphs import GraphClassifier, GraphRegressor, GraphSet, load_graphs
from .grid import GridSearch, grid_search
from .hypergraph import Hypergraph, HypergraphClassifier, load_hypergraph, synthetic_hypergraph
from .links import LinkPredictor
from .many import FitMany, fit_many
from .planted import (
    PlantedTask,
    planted_diagonal,
    planted_frames,
    planted_general_linear,
    planted_geometric,
    planted_signed,
    planted_unreliable,
)
from .regressor import SheafRegressor
from .sampled import LargeGraph, SampledClassifier
from .sheaf import (
    ApproximateSections,
    BundleMaps,
    CellularSheaf,
    Eigenpairs,
    LearnedSheaf,
    NearestSection,
    NodeMaps,
    connection_sheaf,
    sheaf_laplacian,
    synchronise,
)

__all__ = [
    "ApproximateSections",
    "BundleMaps",
    "CellularSheaf",
    "Dataset",
    "Eigenpairs",
    "EpochReport",
    "FitMany",
    "GivenSheaf",
    "GraphClassifier",
    "GraphRegressor",
    "GraphSet",
    "GridSearch",
    "Hypergraph",
    "HypergraphClassifier",
    "Interrupted",
    "LargeGraph",
    "LearnedSheaf",
    "LinkPredictor",
    "NearestSection",
    "NodeMaps",
    "PlantedTask",
    "SampledClassifier",
    "SheafClassifier",
    "SheafRegressor",
    "Split",
    "Uncertainty",
    "UnusedSheaf",
    "__version__",
    "connection_sheaf",
    "cpu_level",
    "fit_many",
    "grid_search",
    "karate_club",
    "load_dataset",
    "load_graphs",
    "load_hypergraph",
    "planted_diagonal",
    "planted_frames",
    "planted_general_linear",
    "planted_geometric",
    "planted_signed",
    "planted_unreliable",
    "plot",
    "rotations",
    "sheaf_laplacian",
    "synchronise",
    "synthetic",
    "synthetic_hypergraph",
    "uncertainty",
]
