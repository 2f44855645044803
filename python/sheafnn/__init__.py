"""Sheaf neural networks, deterministic and Bayesian, for node classification on graphs; and distributions of rotations.

>>> import sheafnn
>>> data = sheafnn.planted_frames(nodes=1000, stalk_dim=2).data
>>> model = sheafnn.SheafClassifier(maps="special-orthogonal", stalk_dim=2).fit(data, split=0)
>>> float(model.score(data)) > 0.75
True
"""

from . import plot, rotations, uncertainty
from ._core import EpochReport
from ._core import version as __version__
from .classifier import Interrupted, SheafClassifier, Uncertainty, UnusedSheaf
from .dataset import Dataset, Split, karate_club, load_dataset, synthetic
from .grid import GridSearch, grid_search
from .planted import (
    PlantedTask,
    planted_diagonal,
    planted_frames,
    planted_general_linear,
    planted_geometric,
    planted_signed,
    planted_unreliable,
)
from .sheaf import LearnedSheaf, NodeMaps, sheaf_laplacian

__all__ = [
    "Dataset",
    "EpochReport",
    "GridSearch",
    "Interrupted",
    "LearnedSheaf",
    "NodeMaps",
    "PlantedTask",
    "SheafClassifier",
    "Split",
    "Uncertainty",
    "UnusedSheaf",
    "__version__",
    "grid_search",
    "karate_club",
    "load_dataset",
    "planted_diagonal",
    "planted_frames",
    "planted_general_linear",
    "planted_geometric",
    "planted_signed",
    "planted_unreliable",
    "plot",
    "rotations",
    "sheaf_laplacian",
    "synthetic",
    "uncertainty",
]
