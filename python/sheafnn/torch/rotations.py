"""Distributions of rotations of R² to R⁵ on tensors, with gradients, batched.

Densities are with respect to the uniform (Haar) distribution, which has mass 1. Derivatives with respect to matrices treat their
entries as free. The steps before decide which directions exist, e.g. ``torch.linalg.matrix_exp`` of a skew matrix. The noise is
the library's noise: a sample is a function of seed and number.

>>> import torch
>>> from sheafnn.torch.rotations import Cayley
>>> kappa = torch.tensor([0.1, 0.9], requires_grad=True)
>>> samples = Cayley(torch.eye(3), kappa).rsample((10,), seed=1)
>>> tuple(samples.shape), samples.requires_grad
((10, 2, 3, 3), True)
"""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch
from torch import Tensor

from .. import _checks, _torch
from ._graphs import check_storage
from ._modules import check_dtype
from ._operators import check_transforms, final

__all__ = ["Cayley", "Haar", "IsotropicGaussian", "LeonCayley", "MatrixFisher"]


def _call(what: str, kind: str, like: Tensor, count: int, noise: Tensor | None = None, **arrays: Tensor) -> None:
    seed, step = (0, 0) if noise is None else noise.tolist()
    names = ("parameter", "concentration", "value", "out", "parameter_bar", "concentration_bar", "value_bar")
    _torch.rotations(
        what,
        kind,
        like.shape[-1],
        like.dtype == torch.float64,
        count,
        seed % 2**64,
        step % 2**32,
        *(arrays[name].data_ptr() if name in arrays else 0 for name in names),
    )


# Of all operators: parameter is B x n x n, concentration B numbers, value B x n x n.


@torch.library.custom_op("sheafnn::rotation_log_prob", mutates_args=(), device_types="cpu")
def _log_prob(kind: str, parameter: Tensor, concentration: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """The log density, and its derivatives."""
    parameter, concentration, value = parameter.contiguous(), concentration.contiguous(), value.contiguous()
    out, kappa_bar = torch.zeros_like(concentration), torch.zeros_like(concentration)
    bar, value_bar = torch.zeros_like(parameter), torch.zeros_like(value)
    _call("log_prob", kind, value, len(value), parameter=parameter, concentration=concentration, value=value, out=out,
          parameter_bar=bar, concentration_bar=kappa_bar, value_bar=value_bar)
    return out, bar, kappa_bar, value_bar


@_log_prob.register_fake
def _(kind: str, parameter: Tensor, concentration: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    one = torch.empty_like(concentration)
    return one, torch.empty_like(parameter), torch.empty_like(one), torch.empty_like(value)


def _log_prob_backward(ctx: Any, bar: Tensor, *_: Any) -> Any:
    parameter_bar, concentration_bar, value_bar, *roots = ctx.saved_tensors
    rows = bar[:, None, None]
    return (None, *final((rows * parameter_bar, bar * concentration_bar, rows * value_bar), (*roots, bar)))


_log_prob.register_autograd(
    _log_prob_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*output[1:], *inputs[1:])
)


@torch.library.custom_op("sheafnn::rotation_kl", mutates_args=(), device_types="cpu")
def _kl(kind: str, parameter: Tensor, concentration: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """KL to the uniform distribution, and its derivatives."""
    parameter, concentration = parameter.contiguous(), concentration.contiguous()
    out, kappa_bar, bar = torch.zeros_like(concentration), torch.zeros_like(concentration), torch.zeros_like(parameter)
    _call("kl", kind, parameter, len(parameter), parameter=parameter, concentration=concentration, out=out,
          parameter_bar=bar, concentration_bar=kappa_bar)
    return out, bar, kappa_bar


@_kl.register_fake
def _(kind: str, parameter: Tensor, concentration: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(concentration), torch.empty_like(parameter), torch.empty_like(concentration)


def _kl_backward(ctx: Any, bar: Tensor, *_: Any) -> Any:
    parameter_bar, concentration_bar, *roots = ctx.saved_tensors
    return (None, *final((bar[:, None, None] * parameter_bar, bar * concentration_bar), (*roots, bar)))


_kl.register_autograd(_kl_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*output[1:], *inputs[1:]))


@torch.library.custom_op("sheafnn::rotation_sample", mutates_args=(), device_types="cpu")
def _sample(kind: str, parameter: Tensor, concentration: Tensor, noise: Tensor) -> Tensor:
    parameter, concentration = parameter.contiguous(), concentration.contiguous()
    out = torch.empty_like(parameter)
    _call("sample", kind, parameter, len(parameter), noise, parameter=parameter, concentration=concentration, out=out)
    return out


@_sample.register_fake
def _(kind: str, parameter: Tensor, concentration: Tensor, noise: Tensor) -> Tensor:
    return torch.empty_like(parameter)


@torch.library.custom_op("sheafnn::rotation_sample_backward", mutates_args=(), device_types="cpu")
def _sample_bars(kind: str, parameter: Tensor, concentration: Tensor, noise: Tensor, bar: Tensor) -> Tuple[Tensor, Tensor]:
    parameter, concentration, bar = parameter.contiguous(), concentration.contiguous(), bar.contiguous()
    parameter_bar, kappa_bar = torch.empty_like(parameter), torch.empty_like(concentration)
    _call("sample_backward", kind, parameter, len(parameter), noise, parameter=parameter, concentration=concentration,
          value=bar, parameter_bar=parameter_bar, concentration_bar=kappa_bar)
    return parameter_bar, kappa_bar


@_sample_bars.register_fake
def _(kind: str, parameter: Tensor, concentration: Tensor, noise: Tensor, bar: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.empty_like(parameter), torch.empty_like(concentration)


def _sample_backward(ctx: Any, bar: Tensor) -> Any:
    bars = torch.ops.sheafnn.rotation_sample_backward(ctx.kind, *ctx.saved_tensors, bar)
    return (None, *final(bars, (*ctx.saved_tensors[:2], bar)), None)


def _keep_sample(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.kind = inputs[0]
    ctx.save_for_backward(*inputs[1:])


_sample.register_autograd(_sample_backward, setup_context=_keep_sample)


@torch.library.custom_op("sheafnn::rotation_mean", mutates_args=(), device_types="cpu")
def _mean(kind: str, parameter: Tensor, concentration: Tensor) -> Tensor:
    parameter, concentration = parameter.contiguous(), concentration.contiguous()
    out = torch.empty_like(parameter)
    _call("mean", kind, parameter, len(parameter), parameter=parameter, concentration=concentration, out=out)
    return out


@_mean.register_fake
def _(kind: str, parameter: Tensor, concentration: Tensor) -> Tensor:
    return torch.empty_like(parameter)


def _matrices(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: {type(value).__name__} is not allowed; expected a tensor")
    if value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        raise ValueError(f"{name}: shape {tuple(value.shape)} is not allowed; the last two axes must have the same length")
    check_dtype(name, value.dtype)
    check_storage(name, value, devices=False)
    return value


def _shape(name: str, value: Any) -> torch.Size:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(f"{name}: {value!r} is not allowed; expected a sequence of whole numbers")
    return torch.Size([_checks.whole(f"{name}[{i}]", size, 0, 2**32 - 1) for i, size in enumerate(value)])


def _joint_shape(name: str, shape: torch.Size, others: torch.Size, of: str) -> torch.Size:
    """The shape to which two batches broadcast.

    :raises ValueError: they do not; the message names the first
    """
    try:
        return torch.broadcast_shapes(shape, others)
    except RuntimeError:
        raise ValueError(
            f"{name}: a batch of shape {tuple(shape)} is not allowed; must broadcast with {tuple(others)}, the batch of {of}"
        ) from None


class _Distribution:
    """What all have: ``batch_shape``, ``event_shape``, ``sample``, ``log_prob``, ``kl_to_uniform``, ``entropy``, ``mean``."""

    _kind = ""
    has_rsample = False
    _parameter: Tensor  #: batch_shape x n x n
    _concentration: Tensor  #: batch_shape

    @property
    def batch_shape(self) -> torch.Size:
        return self._concentration.shape

    @property
    def event_shape(self) -> torch.Size:
        return self._parameter.shape[-2:]

    def _flat(self, shape: torch.Size) -> tuple[Tensor, Tensor]:
        check_transforms((self._parameter, self._concentration), batches=True)
        n = self._parameter.shape[-1]
        return (
            self._parameter.expand(*shape, n, n).reshape(-1, n, n),
            self._concentration.expand(shape).reshape(-1),
        )

    def _draw(self, sample_shape: Sequence[int], seed: int | None) -> Tensor:
        shape = _shape("sample_shape", sample_shape) + self.batch_shape
        if seed is None:
            noise = torch.randint(-(2**63), 2**63 - 1, (2,))
        else:
            own = _checks.seed(seed)
            noise = torch.tensor([own - 2**64 if own >= 2**63 else own, 0])
        parameter, concentration = self._flat(shape)
        return torch.ops.sheafnn.rotation_sample(self._kind, parameter, concentration, noise).reshape(
            *shape, *self.event_shape
        )

    def sample(self, sample_shape: Sequence[int] = (), *, seed: int | None = None) -> Tensor:
        """Samples without gradient, sample_shape x batch_shape x n x n.

        :param seed: None: from PyTorch's generator
        """
        with torch.no_grad():
            return self._draw(sample_shape, seed)

    def rsample(self, sample_shape: Sequence[int] = (), *, seed: int | None = None) -> Tensor:
        """Samples whose derivatives reach the parameters.

        :raises NotImplementedError: of distributions whose samples are not differentiable functions of them
        """
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no rsample; use sample")
        return self._draw(sample_shape, seed)

    def log_prob(self, value: Tensor) -> Tensor:
        """log f of rotations, for every matrix of ``value``, which broadcasts with batch_shape.

        :raises ValueError: matrices that are not rotations
        """
        rows = _matrices("value", value)
        check_transforms((rows,), batches=True)
        if rows.shape[-2:] != self.event_shape or rows.dtype != self._parameter.dtype:
            n = self.event_shape[0]
            raise ValueError(
                f"value: {rows.dtype} of shape {tuple(rows.shape)} is not allowed; must be {self._parameter.dtype}, ... x {n} x {n}"
            )
        shape = _joint_shape("value", rows.shape[:-2], self.batch_shape, "the distribution")
        parameter, concentration = self._flat(shape)
        flat = rows.expand(*shape, *self.event_shape).reshape(-1, *self.event_shape)
        return torch.ops.sheafnn.rotation_log_prob(self._kind, parameter, concentration, flat)[0].reshape(shape)

    def kl_to_uniform(self) -> Tensor:
        """KL to the uniform distribution in nats, batch_shape."""
        parameter, concentration = self._flat(self.batch_shape)
        return torch.ops.sheafnn.rotation_kl(self._kind, parameter, concentration)[0].reshape(self.batch_shape)

    def entropy(self) -> Tensor:
        """With respect to the Haar distribution, at most 0."""
        return -self.kl_to_uniform()

    @property
    def mean(self) -> Tensor:
        """E P, batch_shape x n x n, without gradient."""
        with torch.no_grad():
            parameter, concentration = self._flat(self.batch_shape)
            out = torch.ops.sheafnn.rotation_mean(self._kind, parameter, concentration)
        return out.reshape(*self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, n={self.event_shape[0]})"


class _Located(_Distribution):
    _second = "concentration"  #: the name of the second parameter, for messages

    def __init__(self, location: Tensor, concentration: Tensor | float) -> None:
        matrices = _matrices("location", location)
        if isinstance(concentration, Tensor) and concentration.is_complex():
            raise ValueError(f"{self._second}: {concentration.dtype} is not allowed; must be real numbers")
        try:
            if isinstance(concentration, Tensor):
                own = concentration.to(matrices.dtype)
            else:
                own = torch.as_tensor(concentration, dtype=matrices.dtype)
        except (RuntimeError, TypeError, ValueError):
            raise TypeError(f"{self._second}: {concentration!r} is not allowed; expected a tensor or a number") from None
        check_storage(self._second, own, devices=False)
        shape = _joint_shape(self._second, own.shape, matrices.shape[:-2], "location")
        self._parameter = matrices.expand(*shape, *matrices.shape[-2:])
        self._concentration = own.expand(shape)
        with torch.no_grad():
            self.kl_to_uniform()  # checks the parameters

    @property
    def location(self) -> Tensor:
        return self._parameter

    @property
    def concentration(self) -> Tensor:
        return self._concentration


class Cayley(_Located):
    """The Cayley distribution C(M, kappa) (paper, "Cayley distributions"; math: "Cayley distribution" (2.5)).

    :param location: ... x n x n, rotations M
    :param concentration: concentration in [0, 1), where 0 is uniform; broadcasts with location
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    """

    _kind = "cayley"
    has_rsample = True


class LeonCayley(_Located):
    """Leon's Cayley distribution, with density det((I + P Mᵀ)/2)^k / Z(k).

    :param location: ... x n x n, rotations M
    :param concentration: concentration, at least 0; broadcasts with location
    """

    _kind = "leon"


class IsotropicGaussian(_Located):
    """The isotropic Gaussian distribution on SO(3), IGSO(3), of :class:`sheafnn.rotations.IsotropicGaussian`.

    Derivatives of samples come from the flow that moves the distribution when its scale grows. So expectations have the right
    derivative. A sample itself, drawn by rejection, is not a smooth function of the scale.

    :param location: ... x 3 x 3, rotations M
    :param scale: scale between 1e-30 and 1e30, in radians while it is small; broadcasts with location
    """

    _kind = "isotropic-gaussian"
    _second = "scale"
    has_rsample = True

    def __init__(self, location: Tensor, scale: Tensor | float) -> None:
        super().__init__(location, scale)

    @property
    def scale(self) -> Tensor:
        return self._concentration


class MatrixFisher(_Distribution):
    """The matrix Fisher distribution of rotations of R² and R³, with density exp(tr Fᵀ P) / c(F).

    :param parameter: ... x n x n, any finite matrices F
    """

    _kind = "matrix-fisher"

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = _matrices("parameter", parameter)
        self._concentration = torch.zeros(parameter.shape[:-2], dtype=parameter.dtype)
        with torch.no_grad():
            self.kl_to_uniform()

    @property
    def parameter(self) -> Tensor:
        return self._parameter


class Haar(_Distribution):
    """The uniform distribution of rotations of R^n.

    :param n: dimension, 2 to 5
    :param batch_shape: shape of the batch of independent distributions
    """

    _kind = "haar"

    def __init__(self, n: int, batch_shape: Sequence[int] = (), *, dtype: torch.dtype | None = None) -> None:
        own = _checks.whole("n", n, 2, 5)
        dtype = torch.get_default_dtype() if dtype is None else dtype
        check_dtype("dtype", dtype)
        batch_shape = _shape("batch_shape", batch_shape)
        self._concentration = torch.zeros(batch_shape, dtype=dtype)
        self._parameter = torch.eye(own, dtype=self._concentration.dtype).expand(*batch_shape, own, own)
