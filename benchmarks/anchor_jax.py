"""anchor_network.py in JAX: one compiled function for an epoch, whose arguments are donated."""
from __future__ import annotations

import functools
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

import anchor_network
from anchor_network import Arrays, Graph, Setting


class Operations:
    """Operations on a graph. Sums over arcs are segment sums of sorted arcs, also where derivatives are collected."""

    def __init__(self, graph: Graph):
        self.tanh, self.exp, self.log1p, self.sqrt = jnp.tanh, jnp.exp, jnp.log1p, jnp.sqrt
        self.where, self.concatenate, self.stack, self.kron = jnp.where, jnp.concatenate, jnp.stack, jnp.kron
        self.sigmoid, self.elu, self.log_softmax = jax.nn.sigmoid, jax.nn.elu, jax.nn.log_softmax
        self.nodes = graph.nodes
        source, target, reverse = (jnp.asarray(index, jnp.int32) for index in (graph.source, graph.target, graph.reverse))
        self.degree = jnp.asarray(np.diff(graph.offsets))[:, None, None]

        def sum_arcs(x: Any) -> Any:
            return jax.ops.segment_sum(x, source, graph.nodes, indices_are_sorted=True)

        def function(forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Callable[[Any], Any]:
            """A linear function with a backward pass that JAX would not find."""
            result = jax.custom_vjp(forward)
            result.defvjp(lambda x: (forward(x), None), lambda _, bar: (backward(bar),))
            return result

        self.sum_arcs = function(sum_arcs, lambda bar: bar[source])
        self.from_source = function(lambda x: x[source], sum_arcs)
        self.from_target = function(lambda x: x[target], lambda bar: sum_arcs(bar[reverse]))
        self.reversed = function(lambda x: x[reverse], lambda bar: bar[reverse])
        self._prepare_features(graph)

        @jax.custom_vjp
        def root(p: Any) -> Any:
            return anchor_network.inverse_root(self, p)[0]

        def root_forward(p: Any) -> Any:
            result, roots, q = anchor_network.inverse_root(self, p)
            return result, (roots, q)

        root.defvjp(root_forward, lambda kept, bar: (anchor_network.inverse_root_derivative(self, kept[0], kept[1], bar),))
        self.inverse_root = root

    def _prepare_features(self, graph: Graph) -> None:
        """X W by the non-zero entries, sorted by row, and its derivative by the same, sorted by column."""
        rows, columns = np.nonzero(graph.features)
        count = graph.features.shape[1]
        by_column = np.argsort(columns, kind="stable")
        values = jnp.asarray(graph.features[rows, columns])
        self.entries = len(rows)
        row, column = jnp.asarray(rows, jnp.int32), jnp.asarray(columns, jnp.int32)
        row_by_column, sorted_columns = row[by_column], column[by_column]

        @jax.custom_vjp
        def product(kept: Any, weight: Any) -> Any:
            return jax.ops.segment_sum(kept[:, None] * weight.T[column], row, graph.nodes, indices_are_sorted=True)

        def backward(kept: Any, bar: Any) -> Any:
            parts = kept[by_column][:, None] * bar[row_by_column]
            return None, jax.ops.segment_sum(parts, sorted_columns, count, indices_are_sorted=True).T

        product.defvjp(lambda kept, weight: (product(kept, weight), kept), backward)
        self.input_product = lambda keep, weight: product(values if keep is None else values * keep, weight)

    @staticmethod
    def products(a: Any, b: Any) -> Any:
        return jnp.matmul(a, b)

    @staticmethod
    def transposed(x: Any) -> Any:
        return x.swapaxes(-1, -2)

    @staticmethod
    def eye(d: int, like: Any) -> Any:
        return jnp.eye(d, dtype=like.dtype)


class Draws:
    """What a pass draws from a key."""

    def __init__(self, key: Any, training: bool):
        self.key, self.training, self.count = key, training, 0

    def _next(self) -> Any:
        self.count += 1
        return jax.random.fold_in(self.key, self.count)

    def keep(self, shape: tuple[int, ...], rate: float) -> Any:
        return jax.random.bernoulli(self._next(), 1 - rate, shape) / jnp.float32(1 - rate) if rate else None

    def normal(self, _: int, shape: tuple[int, ...]) -> Any:
        return jax.random.normal(self._next(), shape)

    def quaternion(self, _: int, arcs: int) -> Any:
        return jax.random.normal(self._next(), (arcs, 4))


def epochs(graph: Graph, setting: Setting, samples: int) -> Callable[[int], tuple[float, ...]]:
    """A function that runs an epoch: a step of Adam, then an evaluation of so many samples. It gives the losses of the
    training and the validation nodes, and the accuracies of the validation and the test nodes."""
    ops = Operations(graph)
    labels = jnp.asarray(graph.labels, jnp.int32)
    train, validation, test = (jnp.asarray(nodes, jnp.int32) for nodes in (graph.train, graph.validation, graph.test))
    rate, decay, beta1, beta2 = anchor_network.LEARNING_RATE, 5e-4, 0.9, 0.999

    def loss_of(parameters: Arrays, key: Any, weight: Any) -> Any:
        outputs, kl = anchor_network.forward(ops, setting, parameters, [Draws(key, True)])
        return anchor_network.mean_loss(outputs[0], labels, train) + weight * kl

    @functools.partial(jax.jit, donate_argnums=0)
    def epoch(state: Any, weight: Any) -> Any:
        parameters, first, second, count, key = state
        key, step_key, *keys = jax.random.split(key, 2 + samples)
        loss, bar = jax.value_and_grad(loss_of)(parameters, step_key, weight)
        bar = {name: bar[name] + decay * value for name, value in parameters.items()}
        count += 1
        first = {name: beta1 * first[name] + (1 - beta1) * bar[name] for name in bar}
        second = {name: beta2 * second[name] + (1 - beta2) * bar[name] ** 2 for name in bar}
        size = rate / (1 - beta1 ** count)
        parameters = {name: value - size * first[name] / (jnp.sqrt(second[name] / (1 - beta2 ** count)) + 1e-8)
                      for name, value in parameters.items()}
        outputs, _ = anchor_network.forward(ops, setting, parameters, [Draws(k, False) for k in keys])
        mean = outputs[0] if samples == 1 else jax.nn.logsumexp(jnp.stack(outputs), axis=0) - jnp.log(samples)
        right = mean.argmax(1) == labels
        figures = jnp.stack([loss, anchor_network.mean_loss(mean, labels, validation), right[validation].mean(), right[test].mean()])
        return (parameters, first, second, count, key), figures

    numbers = anchor_network.initial_parameters(setting, graph.features.shape[1])

    def fresh(of: Callable[[Any], Any]) -> Arrays:
        return {name: jnp.asarray(of(value), jnp.float32) for name, value in numbers.items()}

    state = fresh(lambda v: v), fresh(np.zeros_like), fresh(np.zeros_like), jnp.int32(0), jax.random.key(0)

    def run(number: int) -> tuple[float, ...]:
        nonlocal state
        state, figures = epoch(state, jnp.float32(anchor_network.kl_weight(number)))
        return tuple(np.asarray(figures).tolist())

    return run


def check(graph: Graph, setting: Setting, parameters: Arrays, draws: Any, weight: float) -> tuple[Any, Any, Any, Arrays]:
    """Log-probabilities, KL, loss and gradient in double, by compiled code."""
    jax.config.update("jax_enable_x64", True)
    ops = Operations(graph)
    labels, train = jnp.asarray(graph.labels), jnp.asarray(graph.train)

    def loss_of(values: Arrays) -> Any:
        outputs, kl = anchor_network.forward(ops, setting, values, [draws])
        return anchor_network.mean_loss(outputs[0], labels, train) + weight * kl, (outputs[0], kl)

    (loss, (output, kl)), bar = jax.jit(jax.value_and_grad(loss_of, has_aux=True))(parameters)
    return np.asarray(output), float(kl), float(loss), {name: np.asarray(value) for name, value in bar.items()}
