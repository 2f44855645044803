"""The two operators that all layers and networks are: a forward pass, and its backward pass.

A forward pass returns, beside its output and its KL term, a tensor of one number that owns what the backward pass
reads.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, List, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _torch
from . import _graphs
from ._architectures import Architecture, architecture


#: seed and step of a pass, in a tensor or as numbers
Noise = Union[Tensor, Tuple[int, int]]

#: index of the activation that leaves values as they are
_IDENTITY = _torch.activations.index("identity")


def check_activation(name: str, value: Any) -> str:
    """:raises ValueError: no activation of that name"""
    if value not in _torch.activations:
        raise ValueError(f"{name}: {value!r} is not allowed; choose from {', '.join(_torch.activations)}")
    return str(value)


def _output_shape(of: Architecture, edge_index: Tensor, x: Tensor) -> tuple[Any, ...]:
    if of.kind == "learner":
        columns = edge_index.shape[1]
        return (columns * of.map_size + columns // 2 * of.learns_edge_weights,)
    return (x.shape[0], of.row if of.layer else of.classes)


def final(bars: Sequence[Tensor | None], roots: Sequence[Tensor] = ()) -> tuple[Any, ...]:
    """Derivatives, which refuse to be differentiated again: without this, theirs would be 0.

    :param roots: what they depend on
    """
    if not torch.is_grad_enabled():
        return tuple(bars)
    aliases: list[Any] = [None if bar is None else bar.detach().requires_grad_() for bar in bars]
    count = len(bars) + len(roots)
    refusal = torch._C._functions.DelayedError(b"derivatives of derivatives of sheafnn.torch are not available", count)
    return tuple(refusal(*aliases, *roots)[: len(bars)])


def _once(backward: Callable[..., tuple[Any, ...]]) -> Any:
    """A backward pass whose results are :func:`final`, with ``ctx.roots`` and the derivatives that it is given."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *bars: Any) -> tuple[Any, ...]:
        given = [bar for bar in bars if bar is not None]
        _check_batches(given)
        with torch.no_grad():
            results = backward(ctx, *bars)
        return final(results, (*ctx.roots, *given))

    return wrapped


def _check_batches(bars: Iterable[Tensor]) -> None:
    """
    :param bars: derivatives that a backward pass is given
    :raises NotImplementedError: many at once, as ``is_grads_batched`` and torch.vmap make them
    """
    batched = torch._C._functorch.is_batchedtensor, torch._C._functorch.is_legacy_batchedtensor
    if any(is_batched(bar) for bar in bars for is_batched in batched):
        raise NotImplementedError(
            "batches of derivatives of sheafnn.torch are not available; call torch.autograd.grad for each, without is_grads_batched, "
            "vectorize or torch.vmap"
        )


def check_transforms(tensors: Iterable[Tensor], batches: bool = False) -> None:
    """
    :param batches: whether torch.vmap runs
    :raises NotImplementedError: a transform of torch.func, or derivatives in forward mode, which would be 0
    """
    if torch.compiler.is_compiling():
        return
    transforms = torch._C._are_functorch_transforms_active()
    if not transforms and forward_ad._current_level < 0:
        return
    for one in tensors:
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(one).tangent is not None:
            raise NotImplementedError("derivatives of sheafnn.torch in forward mode are not available; use torch.autograd.grad")
        if transforms and torch._C._functorch.is_gradtrackingtensor(one):
            raise NotImplementedError("derivatives of sheafnn.torch by torch.func are not available; use torch.autograd.grad")
        if transforms and not batches and torch._C._functorch.is_batchedtensor(one):
            raise NotImplementedError("torch.vmap of sheafnn.torch is not available; call the module for each graph, or join the graphs")


def _check_parameter(name: str, value: Tensor, shape: Tuple[int, ...], x: Tensor) -> None:
    """C++ reads numbers from an address: nothing else would say that they are others.

    :raises ValueError: another dtype or shape, as assignments may leave it, or another device than x
    """
    if (
        value.dtype == x.dtype
        and value.shape == shape
        and value.device == x.device
        and value.layout == torch.strided
    ):
        return
    if value.dtype != x.dtype:
        raise ValueError(f"{name}: {value.dtype} is not allowed; all parameters of a module must be {x.dtype}")
    if tuple(value.shape) != shape:
        raise ValueError(f"{name}: shape {tuple(value.shape)} is not allowed; must be {' x '.join(map(str, shape))}")
    _check_place(name, value, x)


def _check_place(name: str, value: Tensor, x: Tensor) -> None:
    """:raises ValueError: another device than x, or a sparse layout"""
    _graphs.check_storage(name, value)
    if value.device != x.device:
        raise ValueError(f"{name}: a tensor on {value.device} is not allowed; x is on {x.device}")


def _check_parameters(of: Architecture, x: Tensor, parameters: Sequence[Tensor]) -> None:
    if of.layer and x.shape[1] != of.width:
        raise ValueError(f"lin1.weight: {x.shape[1]} rows are not allowed; must be {of.width}")
    for (name, shape), value in zip(of.expected, parameters):
        _check_parameter(name, value, shape, x)
    if of.given_sheaf:
        return  # a Graph has its sheaf on the CPU, whatever x is on
    for value in parameters[len(of.expected) :]:
        _check_place("maps, edge_weights", value, x)


def _forward(
    name: str,
    edge_index: Tensor,
    x: Tensor,
    parameters: Sequence[Tensor],
    noise: Noise,
    dropout: float,
    input_dropout: float,
    training: bool,
    keep: bool,
    activation: int = _IDENTITY,
    stays: bool = False,
) -> Tuple[Tensor, Any, Any]:
    """Output, KL term, and what owns what the backward pass reads; None without "keep". The KL term is a number; on CUDA
    devices it is a tensor, so that nobody waits for it.

    :param activation: of layers, after all their steps
    :param stays: the caller keeps x, which is contiguous, until the last backward pass
    """
    of = architecture(name)
    plan = _graphs.plan_of(of, edge_index, x, parameters[len(of.expected) :] if of.given_sheaf else ())
    _check_parameters(of, x, parameters)
    output = x.new_empty(_output_shape(of, edge_index, x))
    kl = x.new_empty(()) if _graphs.device_of(x) >= 0 else None
    rows = x.contiguous()
    values = [parameter.contiguous() for parameter in parameters]
    seed, step = noise.tolist() if isinstance(noise, Tensor) else noise
    value, ticket = _torch.forward(
        plan,
        seed % 2**64,
        step % 2**32,
        dropout,
        input_dropout,
        training,
        keep,
        torch.get_num_threads(),
        activation,
        stays,
        [(number, value.data_ptr()) for number, value in zip(of.used, values)],
        rows.data_ptr() if of.layer else 0,
        output.data_ptr(),
        _graphs.stream_of(x),
        0 if kl is None else kl.data_ptr(),
    )
    return output, value if kl is None else kl, ticket


def _scalar(x: Tensor, kl: Any) -> Tensor:
    """A KL term of :func:`_forward` as a tensor."""
    return kl if isinstance(kl, Tensor) else x.new_full((), kl)


def _ticket_tensor(ticket: Any) -> Tensor:
    """A number that owns the ticket."""
    return torch.zeros(1, dtype=torch.int64, device="cpu") if ticket is None else torch.from_numpy(ticket.array())


def _no_ticket() -> Tensor:
    """What a compiler knows of a ticket."""
    return torch.empty((1,), dtype=torch.int64, device="cpu")


@torch.library.custom_op("sheafnn::forward", mutates_args=(), device_types=("cpu", "cuda"))
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
    activation: int,
) -> Tuple[Tensor, Tensor, Tensor]:
    output, kl, ticket = _forward(
        name, edge_index, x, parameters, noise, dropout, input_dropout, training, keep, activation
    )
    return output, _scalar(x, kl), _ticket_tensor(ticket)


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
    activation: int,
) -> Tuple[Tensor, Tensor, Tensor]:
    output = x.new_empty(_output_shape(architecture(name), edge_index, x))
    return output, x.new_empty(()), _no_ticket()


def _backward(
    name: str,
    ticket: Any,
    output_bar: Tensor,
    kl_bar: Tensor | None,
    rows: int,
    columns: int,
    shapes: Sequence[Any],
    wanted: Sequence[bool],
) -> List[Tensor]:
    """The derivative of x, then one for each parameter; empty where it is not wanted. "wanted" says so of x, then
    of each.

    :param kl_bar: None: 0
    """
    x_bar = output_bar.new_empty((rows, columns) if wanted[0] else (0,))
    bars = [output_bar.new_empty(shape if want else (0,)) for shape, want in zip(shapes, wanted[1:])]
    own = output_bar.contiguous()
    on_device = _graphs.device_of(output_bar) >= 0
    _torch.backward(
        ticket,
        own.data_ptr(),
        0.0 if kl_bar is None or on_device else float(kl_bar),
        x_bar.data_ptr() if wanted[0] else 0,
        [(n, bar.data_ptr()) for n, bar, want in zip(architecture(name).used, bars, wanted[1:]) if want],
        _graphs.stream_of(output_bar),
        kl_bar.data_ptr() if kl_bar is not None and on_device else 0,
    )
    return [x_bar, *bars]


@torch.library.custom_op("sheafnn::backward", mutates_args=(), device_types=("cpu", "cuda"))
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
    shapes = [parameter.shape for parameter in parameters]
    return _backward(name, _torch.ticket(int(ticket)), output_bar, kl_bar, rows, columns, shapes, wanted)


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
    ctx.save_for_backward(output[2], x, *parameters)


def _differentiate(ctx: Any, output_bar: Tensor, kl_bar: Tensor, ticket_bar: Any) -> Any:
    ticket, x, *parameters = ctx.saved_tensors
    needs = [ctx.needs_input_grad[2], *ctx.needs_input_grad[3]]
    bars = torch.ops.sheafnn.backward(
        ctx.name, ticket, output_bar, kl_bar, ctx.rows, ctx.columns, parameters, needs
    )
    wanted = final([bar if need else None for bar, need in zip(bars, needs)], (x, *parameters, output_bar, kl_bar))
    return None, None, wanted[0], list(wanted[1:]), None, None, None, None, None, None


forward.register_autograd(_differentiate, setup_context=_keep)


class _Pass(torch.autograd.Function):
    """The same in eager calls, a few hundred microseconds faster."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        name, edge_index, x, noise, dropout, input_dropout, training, *parameters = inputs
        output, kl, ctx.ticket = _forward(
            name, edge_index, x, parameters, noise, dropout, input_dropout, training, True
        )
        ctx.name, ctx.rows, ctx.columns = name, x.shape[0], x.shape[1]
        ctx.shapes, ctx.like = [parameter.shape for parameter in parameters], (output.shape, output.dtype, output.device)
        ctx.roots = [one for one in (x, *parameters) if one.requires_grad]
        ctx.set_materialize_grads(False)
        return output, _scalar(x, kl)

    @staticmethod
    @_once
    def backward(ctx: Any, output_bar: Tensor | None, kl_bar: Tensor | None) -> Any:
        wanted = [ctx.needs_input_grad[2], *ctx.needs_input_grad[7:]]
        if output_bar is None:  # the loss has the KL term alone
            output_bar = torch.zeros(ctx.like[0], dtype=ctx.like[1], device=ctx.like[2])
        bars: List[Any] = _backward(
            ctx.name, ctx.ticket, output_bar, kl_bar, ctx.rows, ctx.columns, ctx.shapes, wanted
        )
        own = [bar if want else None for bar, want in zip(bars, wanted)]
        return None, None, own[0], None, None, None, None, *own[1:]


def is_traced(x: Tensor) -> bool:
    """Whether a compiler, torch.jit.trace, a transform or a subclass of tensors is at work, for which the operators are there."""
    return (
        torch.compiler.is_compiling()
        or type(x) is not Tensor
        or torch._C._are_functorch_transforms_active()
        or torch.jit.is_tracing()
    )


def _keeps(*tensors: Tensor) -> bool:
    """Whether a backward pass may follow. torch.jit.trace records the same with and without gradients, which it checks."""
    return (torch.is_grad_enabled() or torch.jit.is_tracing()) and any(one.requires_grad for one in tensors)


def run(
    name: str,
    edge_index: Tensor,
    x: Tensor,
    parameters: Sequence[Tensor],
    noise: Noise,
    dropout: float,
    input_dropout: float,
    training: bool,
) -> Tuple[Tensor, Tensor]:
    """The output and the KL term, with gradients."""
    check_transforms((x, *parameters))
    keep = _keeps(x, *parameters)
    if is_traced(x):
        output, kl, _ = torch.ops.sheafnn.forward(
            name, edge_index, x, parameters, noise, dropout, input_dropout, training, keep, _IDENTITY
        )
        return output, kl
    if keep:
        return _Pass.apply(name, edge_index, x, noise, dropout, input_dropout, training, *parameters)
    output, kl, _ = _forward(name, edge_index, x, parameters, noise, dropout, input_dropout, training, False)
    return output, _scalar(x, kl)


#: share of entries that are not 0 up to which products read them alone
_SPARSE = 0.1
#: On the CPU the library computes products with matrices of at most so many rows and columns. On an AMD processor MKL takes
#: twice the time (docs/notebook/torch_epochs.md).
_NARROW = 128


def _check_linear(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    _check_parameter("lin1.weight", weight, (weight.shape[0], x.shape[1]), x)
    _check_parameter("lin1.bias", bias, (weight.shape[0],), x)


def _is_narrow(x: Tensor, outputs: int) -> bool:
    return max(x.shape[1], outputs) <= _NARROW and x.is_cpu


def _addresses(first: Tensor | None, second: Tensor | None, third: Tensor | None) -> Tuple[int, int, int]:
    x, y, z = (0 if array is None else array.data_ptr() for array in (first, second, third))
    return x, y, z


def _dense_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x Wᵀ + b, whose gradients PyTorch does not know."""
    outputs = weight.shape[0]
    if not _is_narrow(x, outputs):
        return torch.nn.functional.linear(x, weight, bias)
    own = x.contiguous(), weight.contiguous(), bias.contiguous()
    output = x.new_empty((x.shape[0], outputs))
    wide = x.dtype == torch.float64
    _torch.linear(wide, torch.get_num_threads(), x.shape[0], x.shape[1], outputs, _addresses(*own), output.data_ptr())
    return output


def _dense_linear_backward(x: Tensor, weight: Tensor | None, output_bar: Tensor) -> Tuple[Tensor | None, Tensor, Tensor]:
    """The derivatives of x, of W and of b.

    :param weight: None: the derivative of x is not wanted
    """
    outputs = output_bar.shape[1]
    if not _is_narrow(x, outputs):
        return None if weight is None else torch.mm(output_bar, weight), torch.mm(output_bar.t(), x), output_bar.sum(0)
    own = x.contiguous(), None if weight is None else weight.contiguous(), output_bar.contiguous()
    x_bar = None if weight is None else x.new_empty(x.shape)
    weight_bar, bias_bar = x.new_empty((outputs, x.shape[1])), x.new_empty((outputs,))
    bars = _addresses(x_bar, weight_bar, bias_bar)
    wide = x.dtype == torch.float64
    _torch.linear_backward(wide, torch.get_num_threads(), x.shape[0], x.shape[1], outputs, _addresses(*own), bars)
    return x_bar, weight_bar, bias_bar


@torch.library.custom_op("sheafnn::dense_linear", mutates_args=(), device_types=("cpu", "cuda"))
def dense_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """:func:`_dense_linear` for compilers, so that eager and compiled calls give the same numbers."""
    return _dense_linear(x, weight, bias)


@dense_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.new_empty((x.shape[0], weight.shape[0]))


@torch.library.custom_op("sheafnn::dense_linear_backward", mutates_args=(), device_types=("cpu", "cuda"))
def dense_linear_backward(x: Tensor, weight: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    x_bar, weight_bar, bias_bar = _dense_linear_backward(x, weight, output_bar)
    assert x_bar is not None
    return x_bar, weight_bar, bias_bar


@dense_linear_backward.register_fake
def _(x: Tensor, weight: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(weight.shape), x.new_empty((weight.shape[0],))


def _keep_dense_linear(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])


def _differentiate_dense_linear(ctx: Any, output_bar: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    return final(torch.ops.sheafnn.dense_linear_backward(x, weight, output_bar), (x, weight, output_bar))


dense_linear.register_autograd(_differentiate_dense_linear, setup_context=_keep_dense_linear)


def _linear(x: Tensor, weight: Tensor, bias: Tensor, keep: bool) -> Tuple[Tensor, Any]:
    """x Wᵀ + b of features without gradient, and what owns what the backward pass reads; None where that is x."""
    _check_linear(x, weight, bias)
    plan = _graphs.linear_plan_of(x, weight.shape[0], _SPARSE)
    if plan is None:
        return _dense_linear(x, weight, bias), None
    output = x.new_empty((x.shape[0], weight.shape[0]))
    values = [weight.contiguous(), bias.contiguous()]
    _, ticket = _torch.forward(
        plan, 0, 0, 0.0, 0.0, False, keep, torch.get_num_threads(), _IDENTITY, False,
        [(number, value.data_ptr()) for number, value in enumerate(values)], 0, output.data_ptr(), 0, 0,
    )
    return output, ticket


def _linear_backward(x: Tensor, ticket: Any, output_bar: Tensor) -> Tuple[Tensor, Tensor]:
    if ticket is None:
        return _dense_linear_backward(x, None, output_bar)[1:]
    weight_bar = x.new_empty((output_bar.shape[1], x.shape[1]))
    bias_bar = x.new_empty((output_bar.shape[1],))
    own = output_bar.contiguous()
    _torch.backward(ticket, own.data_ptr(), 0.0, 0, [(0, weight_bar.data_ptr()), (1, bias_bar.data_ptr())], 0, 0)
    return weight_bar, bias_bar


@torch.library.custom_op("sheafnn::linear", mutates_args=(), device_types=("cpu", "cuda"))
def linear(x: Tensor, weight: Tensor, bias: Tensor, keep: bool) -> Tuple[Tensor, Tensor]:
    output, ticket = _linear(x, weight, bias, keep)
    return output, _ticket_tensor(ticket)


@linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, keep: bool) -> Tuple[Tensor, Tensor]:
    return x.new_empty((x.shape[0], weight.shape[0])), _no_ticket()


@torch.library.custom_op("sheafnn::linear_backward", mutates_args=(), device_types=("cpu", "cuda"))
def linear_backward(x: Tensor, ticket: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor]:
    number = int(ticket)
    return _linear_backward(x, _torch.ticket(number) if number else None, output_bar)


@linear_backward.register_fake
def _(x: Tensor, ticket: Tensor, output_bar: Tensor) -> Tuple[Tensor, Tensor]:
    return x.new_empty((output_bar.shape[1], x.shape[1])), x.new_empty((output_bar.shape[1],))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], output[1])


def _differentiate_linear(ctx: Any, output_bar: Tensor, ticket_bar: Any) -> Any:
    x, ticket = ctx.saved_tensors
    return (None, *final(torch.ops.sheafnn.linear_backward(x, ticket, output_bar), (output_bar,)), None)


linear.register_autograd(_differentiate_linear, setup_context=_keep_linear)


class _Convolution(torch.autograd.Function):
    """A convolution in eager calls: linear layer, pass and activation in one step. It gives the KL term where its sheaf
    is drawn.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        name, edge_index, x, noise, dropout, training, activation, weight, bias, *parameters = inputs
        dense = ctx.needs_input_grad[2]
        if dense:
            _check_linear(x, weight, bias)
            h, ctx.linear = _dense_linear(x, weight, bias), None
        else:
            h, ctx.linear = _linear(x, weight, bias, True)
        output, kl, ctx.ticket = _forward(
            name, edge_index, h, parameters, noise, dropout, 0.0, training, True, activation, True
        )
        ctx.save_for_backward(x, weight if dense else None)
        ctx.roots = [one for one in (x, weight, bias, *parameters) if one.requires_grad]
        ctx.h = h  # the pass reads it where it is
        ctx.name, ctx.shapes = name, [parameter.shape for parameter in parameters]
        if not architecture(name).draws:
            return output
        ctx.set_materialize_grads(False)
        return output, _scalar(x, kl)

    @staticmethod
    @_once
    def backward(ctx: Any, output_bar: Tensor | None, kl_bar: Tensor | None = None) -> Any:
        x, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        before = needs[2] or needs[7] or needs[8]
        wanted = [before, *needs[9:]]
        if output_bar is None:  # the loss has the KL term alone
            output_bar = ctx.h.new_zeros(ctx.h.shape[0], architecture(ctx.name).row)
        rows, columns = ctx.h.shape
        bars: List[Any] = _backward(ctx.name, ctx.ticket, output_bar, kl_bar, rows, columns, ctx.shapes, wanted)
        own = [bar if want else None for bar, want in zip(bars, wanted)]
        x_bar = weight_bar = bias_bar = None
        if before:
            h_bar = bars[0]
            if ctx.linear is None:
                x_bar, weight_bar, bias_bar = _dense_linear_backward(x, weight, h_bar)
            else:
                weight_bar, bias_bar = _linear_backward(x, ctx.linear, h_bar)
        return None, None, x_bar, None, None, None, None, weight_bar, bias_bar, *own[1:]


def run_convolution(
    name: str,
    edge_index: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    parameters: Sequence[Tensor],
    noise: Noise,
    dropout: float,
    training: bool,
    activation: str,
) -> Tuple[Tensor, Any]:
    """act(layer(x Wᵀ + b)) and the KL term, with gradients; None where nothing is drawn. The product of features without
    gradient that are mostly 0 reads the entries that are not. Autocast does not change the precision.
    """
    if torch.is_autocast_enabled(x.device.type):
        with torch.autocast(x.device.type, enabled=False):
            return run_convolution(
                name, edge_index, x, weight, bias, parameters, noise, dropout, training, activation
            )
    check_transforms((x, weight, bias, *parameters))
    keep = _keeps(x, weight, bias, *parameters)
    number = _torch.activations.index(activation)
    if is_traced(x):
        if x.requires_grad:
            _check_linear(x, weight, bias)
            h = torch.ops.sheafnn.dense_linear(x, weight, bias)
        else:
            h = torch.ops.sheafnn.linear(x, weight, bias, keep)[0]
        output, kl, _ = torch.ops.sheafnn.forward(
            name, edge_index, h, parameters, noise, dropout, 0.0, training, keep, number
        )
        return output, kl
    draws = architecture(name).draws
    if keep:
        result = _Convolution.apply(
            name, edge_index, x, noise, dropout, training, number, weight, bias, *parameters
        )
        return result if draws else (result, None)
    h, _ = _linear(x, weight, bias, False)
    output, value, _ = _forward(
        name, edge_index, h, parameters, noise, dropout, 0.0, training, False, number, True
    )
    return output, _scalar(x, value) if draws else None
