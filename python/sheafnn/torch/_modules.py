"""What all modules share: parameters by the library's names, and noise."""

from __future__ import annotations

import functools
from typing import Any, Mapping

import torch
from torch import Tensor

from .. import _checks, _torch
from . import _operators
from ._architectures import Architecture, initial_values
from ._graphs import Relations, check_storage, columns_of


class _Modes(torch.nn.Module):
    """Changes between training and evaluation, which loops do twice an epoch, without a search for what is assigned."""

    def train(self, mode: bool = True) -> Any:
        if not isinstance(mode, bool):
            raise ValueError(f"mode: {mode!r} is not allowed; must be True or False")
        self.__dict__["training"] = mode
        for module in self._modules.values():
            if module is not None:
                module.train(mode)
        return self


def _drawn_seed() -> int:
    """A seed from PyTorch's generator."""
    return int(torch.randint(2**62, (), device="cpu"))


class _Names(_Modes):
    """Holds the parameters whose names begin alike."""


@functools.lru_cache(maxsize=4096)
def _places(name: str) -> tuple[tuple[str, ...], str]:
    """The modules on the way to a parameter, and its own name."""
    *path, last = name.split(".")
    return tuple(path), last


class Module(_Modes):
    """A layer or a network, whose ``state_dict`` has the library's names.

    :param seed: seed of initial values and noise; None: PyTorch's generator gives the initial values here and the noise in every
        call
    """

    _noise: Tensor

    def __init__(self, of: Architecture, seed: int | None, dtype: torch.dtype | None, left_out: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._architecture = of
        dtype = torch.get_default_dtype() if dtype is None else dtype
        check_dtype("dtype", dtype)
        self._draws = seed is None
        own = _drawn_seed() if seed is None else _checks.seed(seed)
        self._own = tuple(name for name in of.shapes if name not in left_out)  # names of its parameters
        values = initial_values(of, own, dtype)
        for name in self._own:
            self._place(name, torch.nn.Parameter(values[name]))
        signed = own - 2**64 if own >= 2**63 else own
        self.register_buffer("_noise", torch.tensor([signed, 0], device="cpu"), persistent=False)

    def reset_parameters(self) -> None:
        """Gives the parameters the initial values that a new module has, and sets :attr:`step` to 0. With a seed these are the
        same values again. Without one they are new.

        :raises ValueError: a parameter is computed from others, as by ``torch.nn.utils``; the message names it
        """
        parameters = dict(self.named_parameters(remove_duplicate=False))
        for name in self._own:
            if name not in parameters:
                raise ValueError(f"{name}: a computed parameter is not allowed; remove what computes it first")
        own = _drawn_seed() if self._draws else int(self._noise[0]) % 2**64
        values = initial_values(self._architecture, own, self.dtype)
        with torch.no_grad():
            for name in self._own:
                parameters[name].copy_(values[name])
        self._noise[1] = 0

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """As in PyTorch, but seed and step stay where they are: every pass reads them on the CPU, and ``to_empty`` has no values."""
        noise = self._noise
        super()._apply(fn, recurse)
        self._noise = noise
        return self

    def _place(self, name: str, value: torch.nn.Parameter) -> None:
        path, last = _places(name)
        at: torch.nn.Module = self
        for part in path:
            if part not in at._modules:
                at.add_module(part, _Names())
            at = at._modules[part]  # type: ignore[assignment]
        at.register_parameter(last, value)

    def _named(self, name: str) -> Tensor:
        at: Any = self
        # A compiler would warn of the cache.
        path, last = _places.__wrapped__(name) if torch.compiler.is_compiling() else _places(name)
        for part in path:
            at = at._modules[part]
        found = at._parameters.get(last)
        if found is not None:
            return found
        # Computed, as torch.nn.utils.parametrize does it; spectral_norm and prune compute it before calls, which holders never have.
        for hook in tuple(at._forward_pre_hooks.values()):
            hook(at, ())
        value = getattr(at, last)
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: {value!r} is not allowed; expected a parameter")
        return value

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return self._named(self._own[0]).dtype

    @property
    def step(self) -> int:
        """The number of calls so far, which addresses the noise together with the seed. Modules without a seed have 0. You may
        set it."""
        return int(self._noise[1])

    @step.setter
    def step(self, value: int) -> None:
        self._noise[1] = _checks.whole("step", value, 0, 2**32 - 1)

    def _next_noise(self, random: bool, traced: bool) -> _operators.Noise:
        """Seed and step of a pass; of one that is not traced, as numbers."""
        if not random:
            return self._noise if traced else (0, 0)
        if self._draws:
            return torch.randint(-(2**63), 2**63 - 1, (2,), device="cpu")
        if not traced and torch._C._current_graph_task_id() != -1:
            raise RuntimeError(
                "seed: a module with a seed would draw other numbers in a backward pass than in its forward pass; "
                "with torch.utils.checkpoint leave the seed out"
            )
        noise = self._noise
        if not traced and type(noise) is Tensor and noise.is_cpu:
            return _torch.next_step(noise.data_ptr())
        noise = noise.clone()
        self._noise[1].add_(1)
        return noise

    def _run(
        self,
        x: Tensor,
        relations: Tensor | Relations,
        more: tuple[Tensor, ...] = (),
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        of: Architecture | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The output and the KL term.

        :param of: None: the module's architecture
        """
        of = self._architecture if of is None else of
        parameters = [self._named(name) for name in of.names]
        parameters += more
        columns = self._columns(relations)
        random = of.draws or (self.training and (dropout > 0 or input_dropout > 0 or of.drops))
        noise = self._next_noise(random, _operators.is_traced(x))
        return _operators.run(of.text, columns, x, parameters, noise, dropout, input_dropout, self.training)

    def _columns(self, relations: Tensor | Relations) -> Tensor:
        return columns_of(relations, self._architecture.relations)


def check_features(x: Any, columns: int, relations: Any, dtype: torch.dtype, name: str = "x") -> None:
    """:raises ValueError, TypeError: another shape, dtype or device"""
    if not isinstance(x, Tensor):
        _checks.one_type(name, x)
        raise TypeError(f"{name}: {type(x).__name__} is not allowed; expected a tensor")
    if x.dim() != 2 or x.shape[1] != columns:
        raise ValueError(f"{name}: shape {tuple(x.shape)} is not allowed; must be n x {columns}")
    check_dtype("the module's parameters", dtype)
    if x.dtype != dtype:
        raise ValueError(f"{name}: {x.dtype} is not allowed; the module's parameters are {dtype}")
    check_storage(name, x)
    if isinstance(relations, Relations) and relations.num_nodes != x.shape[0]:
        what = type(relations).__name__.lower()
        raise ValueError(f"{name}: {x.shape[0]} rows are not allowed; the {what} has {relations.num_nodes} nodes")


def check_dtype(name: str, dtype: torch.dtype) -> None:
    """:raises ValueError: neither single nor double precision"""
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name}: {dtype} is not allowed; must be torch.float32 or torch.float64")


def own_precision(x: Any, dtype: torch.dtype) -> Any:
    """What other modules give in the lower precision of autocast, in the precision of the parameters; all else as it is."""
    if isinstance(x, Tensor) and x.dtype in (torch.bfloat16, torch.float16) and torch.is_autocast_enabled(x.device.type):
        return x.to(dtype)
    return x


def rate(name: str, value: Any) -> float:
    """A dropout rate."""
    r = _checks.any_number(name, value)
    if not 0 <= r < 1:
        raise ValueError(f"{name}: {value!r} is not allowed; must be at least 0 and below 1")
    return r


def refuse(options: Mapping[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in options:
            raise ValueError(f"{name}: {options[name]!r} is not allowed; {why}")


class KlModule(Module):
    """A module that remembers the KL term of its last call, as ``self._last_kl``."""

    _last_kl: Tensor

    def kl(self) -> Tensor:
        """KL(Q ‖ prior) of the last call, with gradient: the mean over all maps that were drawn. Deterministic networks have 0.

        :raises RuntimeError: the module was not called yet
        """
        if getattr(self, "_last_kl", None) is None:
            raise RuntimeError("kl() needs a forward pass before it")
        return self._last_kl

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_last_kl"}
