"""Layers and networks by a text that names them, so that operators need nothing but texts, numbers and tensors."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any, Mapping

import torch

from .. import _torch
from .._estimator import option_text

#: of a network's parameters, those that a layer of it leaves to PyTorch (input) or does without (output)
_INPUT, _OUTPUT = ("lin1.weight", "lin1.bias"), ("lin2.weight", "lin2.bias")


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What an operator needs to know of a layer or network, whatever its precision."""

    text: str
    kind: str  #: of a network as checkpoints name it, or diffusion, learner, linear
    maps: str
    stalk_dim: int
    layer: bool  #: a layer, whose features come from PyTorch, else a network
    features: int
    classes: int
    options: Mapping[str, str]

    def __reduce__(self) -> Any:
        return architecture, (self.text,)

    @functools.cached_property
    def narrow(self) -> Any:
        return self.core(False)

    def core(self, wide: bool, device: int = -1) -> Any:
        """The C++ object of a precision, for the CPU or a CUDA device of this number."""
        return _core(self.text, wide, device)

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all parameters, by name, in the order of files."""
        return dict(zip(self.narrow.names, map(tuple, self.narrow.shapes)))

    @functools.cached_property
    def used(self) -> tuple[int, ...]:
        """The parameters that the operator takes, by their position; of diffusion layers, maps and edge weights follow."""
        left_out = _INPUT + _OUTPUT if self.layer else ()
        r = [number for number, name in enumerate(self.shapes) if name not in left_out]
        if self.kind == "diffusion":
            places = {"left": 0, "right": 1, "eps": 2}
            r = [places[name] for name in self.shapes]
            r += [3] * (self.maps != "identity") + [4] * (self.options.get("edge_weights") == "true")
        return tuple(r)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Of the parameters that the operator takes, without maps and edge weights."""
        names = list(self.shapes)
        return tuple(names) if self.kind == "diffusion" else tuple(names[number] for number in self.used)

    @functools.cached_property
    def expected(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of these."""
        return tuple((name, self.shapes[name]) for name in self.names)

    @property
    def planned(self) -> bool:
        """Whether a network treats its features, as trained ones do."""
        return bool(self.options.get("feature_plan"))

    @functools.cached_property
    def width(self) -> int:
        """d' · channels, values per node that a layer reads."""
        return int(self.narrow.width)

    @functools.cached_property
    def row(self) -> int:
        """Values per node that a layer returns, twice as many for complex features."""
        return int(self.narrow.row)

    @property
    def map_size(self) -> int:
        d = self.stalk_dim
        return {"identity": 0, "diagonal": d}.get(self.maps, d * d)

    @functools.cached_property
    def learns_edge_weights(self) -> bool:
        return any(name.startswith("edge.") for name in self.shapes)

    @functools.cached_property
    def draws(self) -> bool:
        """Whether every pass draws something: maps, or what layers draw themselves."""
        own = ("random_attention", "random_phases")
        return bool(self.narrow.bayesian) or any(self.options.get(name) == "true" for name in own)

    @functools.cached_property
    def drops(self) -> bool:
        """Whether trainings have a dropout that no rate of a call says: the learner has its own rate."""
        return self.options.get("learner") == "sage-projected"

    @functools.cached_property
    def given_sheaf(self) -> bool:
        """Whether the maps come with the graph. The operator takes the tensors of ``Graph._sheaf`` after the parameters."""
        return bool(self.narrow.has_given_sheaf)

    @functools.cached_property
    def relations(self) -> str:
        """What a pass goes over: a ``"graph"``, a ``"directed"`` one, whose edges may be there in one direction only, or a
        ``"hypergraph"``.
        """
        if self.narrow.on_hypergraphs:
            return "hypergraph"
        directed = self.options.get("directed") == "true" or self.options.get("layer") == "directed"
        return "directed" if directed else "graph"


def describe(
    kind: str, maps: str, stalk_dim: int, *, layer: bool, features: int, classes: int, options: Mapping[str, Any]
) -> Architecture:
    """The architecture of these options.

    :raises ValueError: an option that there is not, or out of its range
    """
    if not isinstance(maps, str):
        raise ValueError(f"maps: {maps!r} is not allowed; expected a text")
    texts = {key: option_text(key, value) for key, value in options.items() if value is not None}
    return architecture(json.dumps([kind, maps, stalk_dim, layer, features, classes, texts], sort_keys=True))


@functools.lru_cache(maxsize=4096)
def architecture(text: str) -> Architecture:
    kind, maps, stalk_dim, layer, features, classes, options = json.loads(text)
    r = Architecture(text, kind, maps, stalk_dim, layer, features, classes, options)
    r.narrow  # checks the options
    for name, member in vars(Architecture).items():
        if isinstance(member, functools.cached_property):
            getattr(r, name)  # torch.compile cannot trace the lock under which Python before 3.12 computes it
    return r


@functools.lru_cache(maxsize=4096)
def _core(text: str, wide: bool, device: int) -> Any:
    kind, maps, stalk_dim, layer, features, classes, options = json.loads(text)
    return _torch.architecture(kind, maps, stalk_dim, wide, features, classes, options, device)


def initial_values(of: Architecture, seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Fresh parameters by name."""
    values = of.core(dtype == torch.float64).initial(seed)
    return {
        name: torch.tensor(numbers, dtype=torch.float64).reshape(shape).to(dtype)
        for (name, shape), numbers in zip(of.shapes.items(), values)
    }
