"""anchor_network.py in PyTorch, eager or compiled by torch.compile."""
from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

import numpy as np
import torch
import torch.nn.functional as F

import anchor_network
from anchor_network import Arrays, Graph, Setting

warnings.filterwarnings("ignore", message=".*[Ss]parse (CSR tensor support is in beta|invariant checks are)")


def linear(forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A linear function with a backward pass that PyTorch would not find."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return backward(bar)

    return Function.apply


class Functions:
    """Operations that need no graph."""

    def __init__(self, compiled: bool):
        self.tanh, self.exp, self.log1p, self.sqrt = torch.tanh, torch.exp, torch.log1p, torch.sqrt
        self.where, self.concatenate, self.stack, self.kron = torch.where, torch.cat, torch.stack, torch.kron
        self.sigmoid, self.elu, self.log_softmax = torch.sigmoid, F.elu, functools.partial(F.log_softmax, dim=-1)
        self.compiled = compiled

    def products(self, a: Any, b: Any) -> Any:
        return (a[:, :, :, None] * b[:, None]).sum(2) if self.compiled else torch.bmm(a, b)

    @staticmethod
    def transposed(x: Any) -> Any:
        return x.transpose(-1, -2)

    @staticmethod
    def eye(d: int, like: Any) -> Any:
        return torch.eye(d, dtype=like.dtype)


class Operations(Functions):
    """Operations on a graph."""

    def __init__(self, graph: Graph, dtype: torch.dtype, compiled: bool):
        super().__init__(compiled)
        self.nodes = graph.nodes
        source, target, reverse = (torch.from_numpy(index) for index in (graph.source, graph.target, graph.reverse))
        self.source = source
        offsets = torch.from_numpy(graph.offsets)
        arcs = len(graph.source)
        self.degree = torch.diff(offsets).to(dtype)[:, None, None]
        ones = torch.sparse_csr_tensor(offsets, torch.arange(arcs), torch.ones(arcs, dtype=dtype), (graph.nodes, arcs))

        def sum_arcs(x: Any) -> Any:
            if compiled:
                return x.new_zeros((graph.nodes, *x.shape[1:])).index_add(0, source, x)
            return (ones @ x.reshape(arcs, -1)).reshape(graph.nodes, *x.shape[1:])

        self.sum_arcs = linear(sum_arcs, lambda bar: bar[source])
        self.from_source = linear(lambda x: x[source], sum_arcs)
        self.from_target = linear(lambda x: x[target], lambda bar: sum_arcs(bar[reverse]))
        self.reversed = linear(lambda x: x[reverse], lambda bar: bar[reverse])
        self._prepare_features(graph, dtype)
        ops = self

        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, p: Any) -> Any:
                result, roots, q = anchor_network.inverse_root(ops, p)
                ctx.save_for_backward(roots, q)
                return result

            @staticmethod
            def backward(ctx: Any, bar: Any) -> Any:
                roots, q = ctx.saved_tensors
                return anchor_network.inverse_root_derivative(ops, roots, q, bar)

        self.inverse_root = Root.apply

    def _prepare_features(self, graph: Graph, dtype: torch.dtype) -> None:
        rows, columns = np.nonzero(graph.features)
        values = torch.from_numpy(graph.features[rows, columns]).to(dtype)
        self.entries = len(rows)
        shape = graph.features.shape
        by_column = np.argsort(columns, kind="stable")
        row_offsets = torch.from_numpy(np.searchsorted(rows, np.arange(shape[0] + 1)))
        column_offsets = torch.from_numpy(np.searchsorted(columns[by_column], np.arange(shape[1] + 1)))
        row_by_column = torch.from_numpy(rows[by_column])
        column, order = torch.from_numpy(columns), torch.from_numpy(by_column)

        @torch.library.custom_op(f"anchors::product_{id(self)}", mutates_args=())
        def product(kept: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch.sparse_csr_tensor(row_offsets, column, kept, shape) @ weight.t()

        @torch.library.custom_op(f"anchors::product_derivative_{id(self)}", mutates_args=())
        def derivative(kept: torch.Tensor, bar: torch.Tensor) -> torch.Tensor:
            x = torch.sparse_csr_tensor(column_offsets, row_by_column, kept[order], shape[::-1])
            return (x @ bar).t().contiguous()

        product.register_fake(lambda kept, weight: weight.new_empty(shape[0], weight.shape[0]))
        derivative.register_fake(lambda kept, bar: bar.new_empty(bar.shape[1], shape[1]))

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, kept: Any, weight: Any) -> Any:
                ctx.save_for_backward(kept)
                return product(kept, weight)

            @staticmethod
            def backward(ctx: Any, bar: Any) -> Any:
                return None, derivative(ctx.saved_tensors[0], bar)

        self.input_product = lambda keep, weight: Product.apply(values if keep is None else values * keep, weight)


class Draws:
    """What a pass draws."""

    def __init__(self, training: bool):
        self.training = training

    @staticmethod
    def keep(shape: tuple[int, ...], rate: float) -> Any:
        return (torch.rand(shape) >= rate) * (1 / (1 - rate)) if rate else None

    @staticmethod
    def normal(_: int, shape: tuple[int, ...]) -> Any:
        return torch.randn(shape)

    @staticmethod
    def quaternion(_: int, arcs: int) -> Any:
        return torch.randn(arcs, 4)


def epochs(graph: Graph, setting: Setting, samples: int, compiled: bool) -> Callable[[int], tuple[float, ...]]:
    """As anchor_jax.epochs()."""
    ops = Operations(graph, torch.float32, compiled)
    numbers = anchor_network.initial_parameters(setting, graph.features.shape[1])
    return epochs_of(graph, ops, functools.partial(anchor_network.forward, ops, setting), numbers, Draws, samples, compiled)


def epochs_of(graph: Graph, ops: Operations, forward: Callable[..., Any], numbers: Arrays, draws: Any, samples: int,
              compiled: bool) -> Callable[[int], tuple[float, ...]]:
    """Epochs of the network forward(parameters, passes), whose passes are of draws(training)."""
    labels, train, validation, test = (torch.from_numpy(a) for a in (graph.labels, graph.train, graph.validation, graph.test))
    parameters = {name: torch.tensor(value, dtype=torch.float32, requires_grad=True) for name, value in numbers.items()}
    adam = torch.optim.Adam(parameters.values(), lr=anchor_network.LEARNING_RATE, weight_decay=5e-4, fused=True)

    def loss_of(weight: Any) -> Any:
        outputs, kl = forward(parameters, [draws(True)])
        return anchor_network.mean_loss(outputs[0], labels, train) + weight * kl

    def evaluate() -> Any:
        outputs, _ = forward(parameters, [draws(False)] * samples)
        mean = outputs[0] if samples == 1 else torch.logsumexp(torch.stack(outputs), 0) - float(np.log(samples))
        right = (mean.argmax(1) == labels).float()
        return torch.stack([anchor_network.mean_loss(mean, labels, validation), right[validation].mean(), right[test].mean()])

    if compiled:
        loss_of, evaluate = torch.compile(loss_of, fullgraph=True), torch.compile(evaluate, fullgraph=True)

    def run(number: int) -> tuple[float, ...]:
        adam.zero_grad()
        loss = loss_of(torch.tensor(anchor_network.kl_weight(number)))
        loss.backward()
        adam.step()
        with torch.no_grad():
            return (loss.item(), *evaluate().tolist())

    return run


def check(graph: Graph, setting: Setting, parameters: Arrays, draws: Any, weight: float,
          compiled: bool) -> tuple[Any, Any, Any, Arrays]:
    """Log-probabilities, KL, loss and gradient in double."""
    ops = Operations(graph, torch.float64, compiled)
    function = functools.partial(anchor_network.forward, ops, setting)
    return check_of(graph, torch.compile(function, fullgraph=True) if compiled else function, parameters, draws, weight)


def check_of(graph: Graph, forward: Callable[..., Any], parameters: Arrays, draws: Any, weight: float) -> tuple[Any, Any, Any, Arrays]:
    """The same of the network forward(parameters, passes)."""
    labels, train = torch.from_numpy(graph.labels), torch.from_numpy(graph.train)
    draws.arrays = {name: torch.from_numpy(value) for name, value in draws.arrays.items()}
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in parameters.items()}
    outputs, kl = forward(leaves, [draws])
    loss = anchor_network.mean_loss(outputs[0], labels, train) + weight * kl
    gradient = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values()))))
    return outputs[0].detach().numpy(), float(torch.as_tensor(kl).detach()), loss.item(), {
        name: value.numpy() for name, value in gradient.items()}
