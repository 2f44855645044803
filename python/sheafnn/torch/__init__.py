"""Sheaf layers and networks as modules of PyTorch, with gradients, in single and double precision.

They take CPU tensors, and CUDA tensors in builds with SHEAFNN_CUDA.

``x`` is n x p. ``edge_index`` is 2 x m with both directions of every edge, as in PyTorch Geometric, or a :class:`Graph`.
``hyperedge_index`` is 2 x nnz with a node and a hyperedge in every column, or a :class:`Hypergraph`.

>>> import torch
>>> from sheafnn.torch import SheafConv
>>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
>>> conv = SheafConv(5, 12, maps="special-orthogonal", stalk_dim=3)
>>> tuple(conv(torch.ones(3, 5), edge_index).shape)
(3, 12)
"""

_NEEDED = "sheafnn.torch needs PyTorch 2.4 or later: pip install torch"
try:
    from torch.library import custom_op as _installed  # noqa: F401
except ImportError as _error:
    raise ImportError(_NEEDED) from _error

from . import rotations
from ._graphs import Graph, Hypergraph
from .layers import (
    BayesianCooperativeSheafConv,
    BayesianSheafConv,
    BayesianSheafHypergraphConv,
    CooperativeSheafConv,
    PolynomialSheafConv,
    SheafConv,
    SheafDiffusion,
    SheafHypergraphConv,
    SheafLearner,
)
from .networks import (
    BayesianBunn,
    BayesianSheafFlow,
    BayesianSheafHyperGnn,
    BconnNsd,
    Bcsnn,
    Bsnn,
    BsnnAround,
    BsnnGiven,
    Bunn,
    ConnNsd,
    Csnn,
    Nsd,
    NsdGiven,
    SheafFlow,
    SheafHyperGnn,
    Snn,
)

__all__ = [
    "BayesianBunn",
    "BayesianCooperativeSheafConv",
    "BayesianSheafConv",
    "BayesianSheafFlow",
    "BayesianSheafHyperGnn",
    "BayesianSheafHypergraphConv",
    "BconnNsd",
    "Bcsnn",
    "Bsnn",
    "BsnnAround",
    "BsnnGiven",
    "Bunn",
    "ConnNsd",
    "CooperativeSheafConv",
    "Csnn",
    "Graph",
    "Hypergraph",
    "Nsd",
    "NsdGiven",
    "PolynomialSheafConv",
    "SheafConv",
    "SheafDiffusion",
    "SheafFlow",
    "SheafHyperGnn",
    "SheafHypergraphConv",
    "SheafLearner",
    "Snn",
    "rotations",
]
