"""Types of nodes and edges: texts or whole numbers, of which the texts name the types in files."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Iterable, Mapping

import numpy as np

from . import _checks
from ._masks import plain


def type_texts(name: str, values: Any, count: int, of: str) -> list[str]:
    """The texts of types.

    :param name: what messages call the argument
    :param of: what has types, "nodes" or "edges"
    :raises ValueError: another number of types, or a type that is neither a text nor a whole number
    """
    values = plain(values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name}: a masked entry is not allowed; every one of the {of} needs a type")
    own = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(own, (str, bytes)) or not isinstance(own, Iterable):
        raise ValueError(f"{name}: {values!r} is not allowed; expected a list or an array, a type for each of the {of}")
    own = list(own)
    if own and all(isinstance(row, list) and len(row) == 1 for row in own):
        own = [row[0] for row in own]  # a matrix of one column
    if len(own) != count:
        raise ValueError(f"{name}: {len(own)} types are not allowed; must be one for each of {count} {of}")
    texts: list[str] = []
    for i, value in enumerate(own):
        if not isinstance(value, str) and (isinstance(value, bool) or not isinstance(value, Integral)) or value == "":
            raise ValueError(f"{name}[{i}]: {value!r} is not allowed; a type is a text or a whole number")
        if isinstance(value, str) != isinstance(own[0], str):
            raise ValueError(f"{name}[{i}]: {value!r} is not allowed beside {own[0]!r}; types are all texts or all numbers")
        texts.append(str(value))
    _checks.texts(lambda i: f"{name}[{i}]:", texts)
    return texts


def types_of(codes: np.ndarray | None, names: list[str]) -> Any:
    """Types as users give them: whole numbers where all names are, and texts otherwise; None without types."""
    if codes is None:
        return None
    numbers = [int(name) for name in names if name.isascii() and name.removeprefix("-").isdigit()]
    whole = len(numbers) == len(names) and all(str(number) == name for number, name in zip(numbers, names))
    return (np.array(numbers) if whole else np.array(names))[codes]


def stalk_text(name: str, stalks: Mapping[Any, Any] | None, names: list[str], of: str, largest: int) -> str | None:
    """Stalk dimensions of types as an option's text, in the order of the names; other types have the largest.

    :raises ValueError: a type that the data do not have, or a dimension outside 1 … largest
    """
    if stalks is None:
        return None
    if not isinstance(stalks, Mapping):
        raise TypeError(f"{name}: {type(stalks).__name__} is not allowed; expected a mapping from types to stalk dimensions")
    own = dict.fromkeys(names, largest)
    for key, dimension in stalks.items():
        if str(key) not in own:
            known = ", ".join(names) if names else "none"
            raise ValueError(f"{name}[{key!r}]: {dimension!r} is not allowed; the data have no such type of {of}; they have {known}")
        own[str(key)] = _checks.whole(f"{name}[{key!r}]", dimension, 1, largest)
    return ",".join(map(str, own.values()))
