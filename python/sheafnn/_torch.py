"""Layers and networks on tensors, a part of the compiled module; use sheafnn.torch."""

from ._core._torch import *  # noqa: F401, F403
