"""Checks of arguments: messages name the argument, its value and the limit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number of a range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name}: {value!r} is not allowed; must be a whole number")
    own = int(value)
    if not least <= own <= most:
        raise ValueError(f"{name}: {own} is not allowed; must be between {least} and {most}")
    return own


def seed(value: Any, name: str = "seed") -> int:
    return whole(name, value, 0, 2**64 - 1)


def number(name: str, value: Any, least: float, most: float) -> float:
    """A finite number of a range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not least <= float(value) <= most:
        raise ValueError(f"{name}: {value!r} is not allowed; must be a number between {least:g} and {most:g}")
    return float(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name}: {value!r} is not allowed; choose {', '.join(choices)}")
    return str(value)


def real(name: str, value: Any) -> np.ndarray:
    """An array of doubles, row-major."""
    try:
        array = np.asarray(value)
        if not np.iscomplexobj(array):
            return np.ascontiguousarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    raise ValueError(f"{name}: Complex data not supported")


def unmasked(name: str, value: Any) -> Any:
    """Of a masked array the numbers, with NaN for its masked entries; other values as they are."""
    if not np.ma.isMaskedArray(value):
        return value
    return np.where(np.ma.getmaskarray(value), np.nan, real(name, np.ma.getdata(value)))
