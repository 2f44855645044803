"""The networks of the program graphs in plain PyTorch, on batches of PyTorch Geometric: anchor_network.forward() with layer norm, sums over
the nodes of each graph and two layers of readout, for graph_baselines.py.

Batches need the numbers of the opposite arcs: graphs are Pairs instead of Data.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

import anchor_network
import anchor_torch
from anchor_network import Arrays, Setting, quaternion_rotation


class Pairs(Data):
    """A graph with `reverse`, the number of the opposite arc of every arc, which batches shift by the arcs before."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self.num_edges if key == "reverse" else super().__inc__(key, value, *args, **kwargs)


class Operations(anchor_torch.Functions):
    """Operations on a batch."""

    def __init__(self, batch: Any):
        super().__init__(False)
        self.batch, self.nodes, self.entries = batch, batch.num_nodes, 0
        self.source, self.target = batch.edge_index
        self.degree = self.sum_arcs(batch.x.new_ones(len(self.source), 1, 1))

    def sum_arcs(self, x: Any) -> Any:
        return x.new_zeros((self.nodes, *x.shape[1:])).index_add(0, self.source, x)

    def from_source(self, x: Any) -> Any:
        return x.index_select(0, self.source)

    def from_target(self, x: Any) -> Any:
        return x.index_select(0, self.target)

    def reversed(self, x: Any) -> Any:
        return x.index_select(0, self.batch.reverse)

    def input_product(self, _: Any, weight: Any) -> Any:
        return self.batch.x @ weight.T


def exponential(ops: Any, phi: Any) -> Any:
    """exp of the skew-symmetric 3 × 3 matrices whose strictly lower triangles phi fills column by column."""
    angle = torch.sqrt((phi * phi).sum(1) + 1e-30)
    share = torch.sin(angle / 2) / angle
    return quaternion_rotation(ops, torch.cos(angle / 2), share * phi[:, 2], -share * phi[:, 1], share * phi[:, 0])


def normed_step(ops: Any, setting: Setting, parameters: Arrays, layer: int, *rest: Any) -> Any:
    x = anchor_network.diffusion_step(ops, setting, parameters, layer, *rest)
    return F.layer_norm(x, x.shape[1:], parameters[f"norm.{layer}.weight"], parameters[f"norm.{layer}.bias"])


def pooled_outputs(ops: Any, parameters: Arrays, x: Any) -> Any:
    """Log-probabilities of the graphs."""
    pooled = global_add_pool(x, ops.batch.batch, ops.batch.num_graphs)
    hidden = F.gelu(F.linear(pooled, parameters["head.0.weight"], parameters["head.0.bias"]))
    return anchor_network.outputs_of(ops, parameters, hidden)


class Network(torch.nn.Module):
    """`kl` is the KL term of the last call."""

    def __init__(self, bayesian: bool, maps: str, features: int, classes: int, layers: int, samples: int = 3):
        super().__init__()
        self.samples = samples if bayesian else 1
        self.setting = Setting(bayesian, maps, classes, layers=layers, input_dropout=0, dropout=0, step=normed_step, output=pooled_outputs,
                               rotation=exponential, spread=(3.0, 0.0005))
        numbers = anchor_network.initial_parameters(self.setting, features)
        h = self.setting.hidden
        rng = np.random.default_rng(1)
        numbers |= {"head.0.weight": rng.uniform(-1, 1, (h, h)) / math.sqrt(h), "head.0.bias": np.zeros(h)}
        for layer in range(layers):
            numbers |= {f"norm.{layer}.weight": np.ones(h), f"norm.{layer}.bias": np.zeros(h)}
        self.names = list(numbers)
        self.values = torch.nn.ParameterList(torch.tensor(value, dtype=torch.float32) for value in numbers.values())
        self.kl: Any = 0.0

    def load(self, arrays: Arrays) -> None:
        """Takes parameters by name."""
        if set(arrays) != set(self.names):
            raise ValueError(f"parameters that one network alone has: {sorted(set(arrays) ^ set(self.names))}")
        with torch.no_grad():
            for name, value in zip(self.names, self.values):
                value.copy_(torch.from_numpy(arrays[name]))

    def forward(self, batch: Any) -> Any:
        """Log-probabilities, of several samples while it evaluates."""
        draws = [anchor_torch.Draws(self.training)] * (1 if self.training else self.samples)
        outputs, self.kl = anchor_network.forward(Operations(batch), self.setting, dict(zip(self.names, self.values)), draws)
        return outputs[0] if len(draws) == 1 else torch.logsumexp(torch.stack(outputs), 0) - math.log(len(draws))
