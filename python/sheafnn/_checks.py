"""Checks of arguments: messages name the argument, its value and the limit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Callable, Iterable, Sequence, Union

import numpy as np
import scipy.sparse

from ._masks import plain


Seed = Union[int, np.random.Generator, np.random.RandomState]


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number of a range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name}: {value!r} is not allowed; must be a whole number")
    own = int(value)
    if not least <= own <= most:
        raise ValueError(f"{name}: {own} is not allowed; must be between {least} and {most}")
    return own


def listed(name: str, values: Any, default: Iterable[Any]) -> list[Any]:
    """A list, none twice, not empty; None: the default."""
    if values is not None and np.ndim(values) != 1:
        raise ValueError(f"{name}: {values!r} is not allowed; expected a list of whole numbers")
    r = list(default if values is None else values)
    if not r:
        raise ValueError(f"{name}: an empty list is not allowed; name at least one")
    once(name, r)
    return r


def once(name: str, values: Sequence[Any]) -> None:
    """Refuses a value that occurs twice."""
    again = next((value for i, value in enumerate(values) if value in values[:i]), None)
    if again is not None:
        raise ValueError(f"{name}: {again!r} is not allowed twice")


def seed(value: Any, name: str = "seed") -> int:
    """A seed of 64 bits; NumPy's random generators are asked for one."""
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**64, dtype=np.uint64))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**64, dtype=np.uint64))
    return whole(name, value, 0, 2**64 - 1)


def any_number(name: str, value: Any) -> float:
    """A number whose range C++ checks."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name}: {value!r} is not allowed; must be a number")
    return float(value)


def number(name: str, value: Any, least: float, most: float) -> float:
    """A finite number of a range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not least <= float(value) <= most:
        raise ValueError(f"{name}: {value!r} is not allowed; must be a number between {least:g} and {most:g}")
    return float(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name}: {value!r} is not allowed; choose {', '.join(choices)}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """A boolean: of a text, bool() would be True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}: {value!r} is not allowed; must be True or False")
    return bool(value)


def real(name: str, value: Any) -> np.ndarray:
    """An array of doubles, row-major, of anything that holds numbers: also of tensors, and NaN where an entry is masked."""
    value = plain(value)
    if scipy.sparse.issparse(value):
        raise ValueError(f"{name}: a sparse matrix is not allowed; expected an array, as .toarray() gives it")
    if np.ma.isMaskedArray(value):
        return np.ascontiguousarray(unmasked(name, value))
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    _refuse_times(name, array)
    try:
        if not np.iscomplexobj(array):
            return np.ascontiguousarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    raise ValueError(f"{name}: Complex data not supported")


def _refuse_times(name: str, array: np.ndarray) -> None:
    """NumPy would take times for numbers of their unit."""
    if array.dtype.kind in "mM":
        raise ValueError(f"{name}: {array.dtype} is not allowed; expected numbers, not times")
    if array.dtype == object:
        for place, entry in np.ndenumerate(array):
            if isinstance(entry, (np.datetime64, np.timedelta64)):
                raise ValueError(f"{name}[{', '.join(map(str, place))}]: {entry!r} is not allowed; expected numbers, not times")


def no_parts_of_dataset(**parts: Any) -> None:
    """Refuses arguments together with a Dataset that has what they say.

    :raises ValueError: one that is not None
    """
    for name, value in parts.items():
        if value is not None:
            hint = "; use Dataset.with_splits for others" if name in ("train", "validation") else ""
            raise ValueError(f"{name}: a Dataset has its own{hint}")


def features(name: str, value: Any) -> Any:
    """Features before others convert them: masked values are NaN, and duplicates of a sparse matrix add up as doubles."""
    if scipy.sparse.issparse(value):
        sound(name, value)
        return value.astype(np.float64) if value.dtype.kind in "biuf" else value
    if hasattr(value, "iloc") and hasattr(value, "columns"):  # a data frame
        for position, column in enumerate(value.columns):
            dtype = value.iloc[:, position].dtype
            if getattr(dtype, "kind", "O") in "mM":
                raise ValueError(f"{name}: column {column!r} holds {dtype}, not numbers")
            if getattr(dtype, "kind", "O") not in "biufc":
                _refuse_texts(name, column, value.iloc[:, position])
    if isinstance(value, (list, tuple)) and any(map(np.ma.isMaskedArray, value)):
        try:
            value = np.ma.array(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if getattr(getattr(value, "dtype", None), "kind", "O") in "mM":
        _refuse_times(name, np.asarray(value))
    return unmasked(name, value)


def _refuse_texts(name: str, column: Any, values: Any) -> None:
    """Names the column of a data frame whose texts are not numbers."""
    for row, entry in enumerate(values):
        if isinstance(entry, str):
            try:
                float(entry)
            except ValueError:
                raise ValueError(f"{name}: column {column!r}, row {row}: {entry!r} is not allowed; expected numbers") from None


def sound(name: str, matrix: Any) -> None:
    """Refuses a sparse matrix whose own arrays contradict each other: SciPy would read other memory."""
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    elif matrix.format == "coo":
        for axis, (numbers, count) in enumerate(zip((matrix.row, matrix.col), matrix.shape)):
            if len(numbers) != len(matrix.data) or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < count):
                raise ValueError(f"{name}: the {('rows', 'columns')[axis]} of its entries are not within 0 … {count - 1}, one for each entry")


def texts(place: Callable[[int], str], values: Iterable[str]) -> None:
    """Texts that files can hold.

    :param place: what messages call text i, e.g. "labels[0]: label"
    """
    for i, value in enumerate(values):
        if "\0" in value:
            raise ValueError(f"{place(i)} {value!r} is not allowed; a text must not hold the character \\0")
        if not value.isascii() and value.encode("utf-8", "replace").decode() != value:
            raise ValueError(f"{place(i)} {value!r} is not allowed; it is not Unicode text")


def different(name: str, values: Sequence[str]) -> None:
    """Refuses empty names, and names that are there twice, as files do."""
    first: dict[str, int] = {}
    for i, value in enumerate(values):
        if value == "":
            raise ValueError(f"{name}[{i}]: '' is not allowed; a name must not be empty")
        if first.setdefault(value, i) != i:
            raise ValueError(f"{name}[{i}]: {value!r} is not allowed; column {first[value]} has the same name")


def names(name: str, value: Any) -> list[str]:
    """Names of columns, none of which is empty; a text is one name."""
    own = text_list(name, value, "a list of names") or []
    if "" in own:
        raise ValueError(f"{name}: {value!r} is not allowed; a name is empty")
    return own


def text_list(name: str, value: Any, expected: str) -> list[str] | None:
    """One text or several, or None.

    :param expected: what messages expect, e.g. "a list of names"
    """
    if value is None:
        return None
    if isinstance(value, str):
        return [value]
    own = list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(text, str) for text in own):
        raise ValueError(f"{name}: {value!r} is not allowed; expected {expected}")
    return own


def unmasked(name: str, value: Any) -> Any:
    """Of a masked array the numbers, with NaN for its masked entries; other values as they are."""
    if not np.ma.isMaskedArray(value):
        return value
    return np.where(np.ma.getmaskarray(value), np.nan, real(name, np.ma.getdata(value)))


def no_adjacency(name: str, value: Any) -> None:
    """
    :raises TypeError: a sparse adjacency matrix, as transforms of PyTorch Geometric leave it in ``adj_t``: an n x n tensor of a
        sparse layout, or a ``torch_sparse.SparseTensor``
    """
    sparse = "sparse" in str(getattr(value, "layout", "")) and value.shape[0] != 2
    if sparse or any(kind.__name__ == "SparseTensor" for kind in type(value).__mro__):
        raise TypeError(
            f"{name}: a sparse matrix, as adj_t, is not allowed; give node numbers: torch_geometric.utils.to_edge_index(adj_t)[0]"
        )


def made(self: Any, core: Any, more: Any) -> None:
    """:raises TypeError: somebody calls the class of data with arrays, instead of a function that makes one"""
    if more or not isinstance(core, self._kind):
        raise TypeError(f"{type(self).__name__}: these arguments are not allowed; make one with {self._made_by}")


def one_type(name: str, value: Any) -> None:
    """Arrays have all nodes and all edges, whatever their types.

    :raises TypeError: ``HeteroData`` of PyTorch Geometric, a batch of it, or one of its dictionaries
    """
    if any(kind.__name__ == "HeteroData" for kind in type(value).__mro__):
        raise TypeError(f"{name}: HeteroData is not allowed; give nodes and edges of one type, as data.to_homogeneous() has them")
    if isinstance(value, dict):
        raise TypeError(
            f"{name}: a dictionary of types, as HeteroData has it, is not allowed; give nodes and edges of one type, as"
            " data.to_homogeneous() has them"
        )
