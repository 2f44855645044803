"""The two operators that all layers and networks are: a forward pass, and its backward pass.

A forward pass returns, beside its output and its KL term, a tensor of one number that owns what the backward pass reads.
"""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import torch
from torch import Tensor

from .. import _torch
from . import _graphs
from ._architectures import Architecture, architecture, describe


def _output_shape(of: Architecture, edge_index: Tensor, x: Tensor) -> tuple[Any, ...]:
    if of.kind == "learner":
        columns = edge_index.shape[1]
        return (columns * of.map_size + columns // 2 * of.learns_edge_weights,)
    return (x.shape[0], of.width if of.layer else of.classes)


@torch.library.custom_op("sheafnn::forward", mutates_args=(), device_types="cpu")
def forward(
    name: str,
    edge_index: Tensor,
    x: Tensor,
    parameters: Sequence[Tensor],
    noise: Tensor,
    dropout: float,
    input_dropout: float,
    training: bool,
    keep: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    of = architecture(name)
    plan = _graphs.plan_of(of, edge_index, x)
    output = x.new_empty(_output_shape(of, edge_index, x))
    rows = x.detach().contiguous()
    values = [parameter.detach().contiguous() for parameter in parameters]
    seed, step = noise.tolist()
    kl, ticket = _torch.forward(
        plan,
        seed % 2**64,
        step % 2**32,
        dropout,
        input_dropout,
        training,
        keep,
        torch.get_num_threads(),
        [(number, value.data_ptr()) for number, value in zip(of.used, values)],
        rows.data_ptr() if of.layer else 0,
        output.data_ptr(),
    )
    return output, x.new_full((), kl), torch.from_numpy(ticket)


@forward.register_fake
def _(
    name: str,
    edge_index: Tensor,
    x: Tensor,
    parameters: Sequence[Tensor],
    noise: Tensor,
    dropout: float,
    input_dropout: float,
    training: bool,
    keep: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    output = x.new_empty(_output_shape(architecture(name), edge_index, x))
    return output, x.new_empty(()), x.new_empty((1,), dtype=torch.int64)


@torch.library.custom_op("sheafnn::backward", mutates_args=(), device_types="cpu")
def backward(
    name: str,
    ticket: Tensor,
    output_bar: Tensor,
    kl_bar: Tensor,
    rows: int,
    columns: int,
    parameters: Sequence[Tensor],
    wanted: Sequence[bool],
) -> List[Tensor]:
    """The derivative of x, then one for each parameter; empty where it is not wanted. \"wanted\" says so of x, then of each."""
    x_bar = output_bar.new_empty((rows, columns) if wanted[0] else (0,))
    bars = [output_bar.new_empty(p.shape if want else (0,)) for p, want in zip(parameters, wanted[1:])]
    own = output_bar.contiguous()
    numbers = architecture(name).used
    _torch.backward(
        int(ticket),
        own.data_ptr(),
        float(kl_bar),
        x_bar.data_ptr() if wanted[0] else 0,
        [(number, bar.data_ptr()) for number, bar, want in zip(numbers, bars, wanted[1:]) if want],
    )
    return [x_bar, *bars]


@backward.register_fake
def _(
    name: str,
    ticket: Tensor,
    output_bar: Tensor,
    kl_bar: Tensor,
    rows: int,
    columns: int,
    parameters: Sequence[Tensor],
    wanted: Sequence[bool],
) -> List[Tensor]:
    x_bar = output_bar.new_empty((rows, columns) if wanted[0] else (0,))
    return [x_bar, *(output_bar.new_empty(p.shape if want else (0,)) for p, want in zip(parameters, wanted[1:]))]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    name, _, x, parameters = inputs[:4]
    ctx.name, ctx.rows, ctx.columns = name, x.shape[0], x.shape[1]
    ctx.count = len(parameters)
    ctx.save_for_backward(output[2], *parameters)


def _differentiate(ctx: Any, output_bar: Tensor, kl_bar: Tensor, ticket_bar: Any) -> Any:
    ticket, *parameters = ctx.saved_tensors
    needs = [ctx.needs_input_grad[2], *ctx.needs_input_grad[3]]
    bars = torch.ops.sheafnn.backward(
        ctx.name, ticket, output_bar, kl_bar, ctx.rows, ctx.columns, parameters, needs
    )
    wanted = [bar if need else None for bar, need in zip(bars, needs)]
    return None, None, wanted[0], wanted[1:], None, None, None, None, None


forward.register_autograd(_differentiate, setup_context=_keep)


#: share of entries that are not 0 up to which products read them alone
_SPARSE = 0.1


@torch.library.custom_op("sheafnn::linear", mutates_args=(), device_types="cpu")
def linear(x: Tensor, weight: Tensor, bias: Tensor, keep: bool) -> Tuple[Tensor, Tensor]:
    """x Wᵀ + b of features without gradient, and what owns what the backward pass reads; 0 where that is x."""
    if not _graphs.is_sparse(x, _SPARSE):
        return torch.nn.functional.linear(x, weight, bias), torch.zeros(1, dtype=torch.int64)
    of = describe("linear", "", 1, layer=False, features=x.shape[1], classes=weight.shape[0], options={})
    output = x.new_empty((x.shape[0], weight.shape[0]))
    values = [weight.detach().contiguous(), bias.detach().contiguous()]
    _, ticket = _torch.forward(
        _graphs.edgeless_plan_of(of, x), 0, 0, 0.0, 0.0, False, keep, torch.get_num_threads(),
        [(number, value.data_ptr()) for number, value in enumerate(values)], 0, output.data_ptr(),
    )
    return output, torch.from_numpy(ticket)


@linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, keep: bool) -> Tuple[Tensor, Tensor]:
    return x.new_empty((x.shape[0], weight.shape[0])), x.new_empty((1,), dtype=torch.int64)


@torch.library.custom_op("sheafnn::linear_backward", mutates_args=(), device_types="cpu")
def linear_backward(x: Tensor, ticket: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor]:
    if int(ticket) == 0:
        return output_bar.t() @ x, output_bar.sum(0)
    weight_bar = x.new_empty((output_bar.shape[1], x.shape[1]))
    bias_bar = x.new_empty((output_bar.shape[1],))
    own = output_bar.contiguous()
    _torch.backward(int(ticket), own.data_ptr(), 0.0, 0, [(0, weight_bar.data_ptr()), (1, bias_bar.data_ptr())])
    return weight_bar, bias_bar


@linear_backward.register_fake
def _(x: Tensor, ticket: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor]:
    return x.new_empty((output_bar.shape[1], x.shape[1])), x.new_empty((output_bar.shape[1],))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], output[1])


def _differentiate_linear(ctx: Any, output_bar: Tensor, ticket_bar: Any) -> Any:
    x, ticket = ctx.saved_tensors
    return (None, *torch.ops.sheafnn.linear_backward(x, ticket, output_bar), None)


linear.register_autograd(_differentiate_linear, setup_context=_keep_linear)
