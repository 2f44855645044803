"""Sets of nodes, in the forms that people write them: masks (booleans, or 0 and 1) and node numbers."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

#: Train, validation and test of a split, int32.
Sets = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
#: Keys of a mapping of sets, the first that there is before the others
SPELLINGS = {"train": ("train",), "validation": ("validation", "valid", "val"), "test": ("test",)}


def plain(value: Any) -> Any:
    """A torch tensor as a NumPy array, also one that needs gradients or lies on a device."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16


def dense(value: Any) -> Any:
    """A tensor of a sparse layout as a dense one; all else as it is."""
    return value.to_dense() if "sparse" in str(getattr(value, "layout", "")) else value


def _array(nodes: Any, name: str) -> np.ndarray:
    """Booleans or numbers; of objects, those that they are."""
    nodes = plain(nodes)
    if nodes is None:
        raise ValueError(f"{name}: None is not allowed; write [] where there are no nodes")
    if isinstance(nodes, (set, frozenset, Mapping)):
        raise ValueError(f"{name}: {type(nodes).__name__} is not allowed; expected a list or an array of node numbers, or a mask")
    if scipy.sparse.issparse(nodes):
        raise ValueError(f"{name}: a sparse matrix is not allowed; expected a mask or node numbers")
    if np.ma.isMaskedArray(nodes):
        hidden = np.argwhere(np.ma.getmaskarray(nodes))
        if len(hidden):
            raise ValueError(f"{name}: entry {_place(hidden[0])} is masked; a mask needs a value for every node")
        nodes = np.ma.getdata(nodes)
    try:
        array = np.asarray(nodes)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if array.dtype == object and array.size:
        kinds = (bool, np.bool_), (int, np.integer)
        for kind, dtype in zip(kinds, (bool, np.int64)):
            if all(isinstance(entry, kind) for entry in array.ravel()):
                return array.astype(dtype)
        numbers = (bool, np.bool_, int, np.integer, float, np.floating)
        for place, entry in np.ndenumerate(array):
            if not isinstance(entry, numbers):
                raise ValueError(
                    f"{name}: entry {_place(place)}: {entry!r} is not allowed; expected a mask (booleans, or 0 and 1) or node numbers"
                )
        return array.astype(float)
    return array


def _place(index: Any) -> str:
    return ", ".join(str(int(i)) for i in index)


def _is_mask(array: np.ndarray, count: int) -> bool:
    """Numbers are a mask where they cannot be node numbers: n of them, only 0 and 1, one of which repeats."""
    if array.dtype == bool or array.dtype.kind == "f":
        return True
    if array.dtype.kind not in "iu" or not ((array == 0) | (array == 1)).all():
        return False
    if array.ndim > 1:
        return True
    return array.size == count and (array.size > 2 or len(np.unique(array)) < array.size or array.tolist() == [1])


def _checked_mask(array: np.ndarray, name: str, splits: bool) -> np.ndarray:
    """A mask as booleans.

    :param splits: rows are splits
    """
    wrong = np.argwhere(~((array == 0) | (array == 1)))
    if len(wrong):
        *split, node = wrong[0]
        place = f"split {split[0]}, node {node}" if splits else f"node {node}"
        raise ValueError(
            f"{name}: {place}: {array[tuple(wrong[0])]} is not allowed; a mask holds True and False, or 1 and 0"
        )
    return array.astype(bool)


def node_numbers(nodes: Any, count: int, name: str, *, distinct: bool = True, of: str = "node") -> NDArray[np.int32]:
    """Node numbers of a mask or of node numbers, as int32.

    Integers are a mask if there are n of them, all 0 or 1, and one repeats. With n = 2, [0, 1] are two node numbers.

    :param distinct: node numbers may not repeat
    :param of: what the numbers are of, in messages
    """
    array = _array(nodes, name)
    if array.ndim != 1:
        raise ValueError(f"{name}: {array.ndim} axes: expected a mask or {of} numbers, one axis")
    if array.size == 0 and array.dtype != bool:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: {array.dtype}: expected a mask of booleans or whole {of} numbers")
    if _is_mask(array, count):
        if array.size != count:
            if array.dtype != bool:
                raise ValueError(f"{name}: {array.dtype}: expected a mask of booleans or whole {of} numbers")
            there = "the graph has" if of == "node" else "there are"
            raise ValueError(f"{name}: a mask of {array.size}: {there} {count} {of}s")
        return np.flatnonzero(_checked_mask(array, name, False)).astype(np.int32)
    if distinct and array.size == count and len(np.unique(array)) < array.size:
        node = np.flatnonzero((array != 0) & (array != 1))[0]
        raise ValueError(
            f"{name}: {of} {node}: {array[node]} is not allowed; a mask holds 0 and 1, and {of} numbers do not repeat"
        )
    bad = array[(array < 0) | (array >= count)]
    if bad.size:
        raise ValueError(f"{name}: {of} {bad[0]}: must be between 0 and {count - 1}")
    if distinct and array.size:
        values, times = np.unique(array, return_counts=True)
        if times.max() > 1:
            raise ValueError(f"{name}: {values[times > 1][0]} is not allowed; a {of} may appear only once")
    return np.ascontiguousarray(array, np.int32)


def _columns(nodes: Any, count: int, name: str) -> list[NDArray[np.int32]]:
    """Node numbers of every split that a set has: masks of n x S or S x n, or one mask or node numbers."""
    array = _array(nodes, name)
    if array.ndim != 2:
        return [node_numbers(nodes, count, name)]
    if count not in array.shape or array.size == 0:
        raise ValueError(
            f"{name}: shape {array.shape} is not allowed; masks of several splits are {count} x splits or splits x {count}"
        )
    if array.shape == (count, count) and count > 1:
        raise ValueError(
            f"{name}: shape {array.shape} is not allowed; as many splits as nodes may be rows or columns, give a mask for each split"
        )
    if array.dtype.kind not in "biuf" or (array.dtype.kind in "iu" and array.min() >= 0 and array.max() > 1):
        raise ValueError(f"{name}: {array.dtype} of shape {array.shape} is not allowed; several splits are masks, of 0 and 1")
    rows = array if array.shape[1] == count else array.T
    return [np.flatnonzero(row).astype(np.int32) for row in _checked_mask(rows, name, True)]


def split_sets(parts: Sequence[Any] | Mapping[str, Any], count: int, names: Sequence[str]) -> list[Sets]:
    """The splits of three sets: one, or with masks of several splits those; a set of one mask belongs to all of them.

    :param names: what messages call the sets
    """
    columns = [_columns(part, count, name) for part, name in zip(parts, names)]
    splits = next((len(own) for own in columns if len(own) > 1), 1)
    for own, name in zip(columns, names):
        if len(own) not in (1, splits):
            raise ValueError(f"{name}: {len(own)} splits are not allowed; another set has {splits}")
    train, validation, test = ([own[s if len(own) > 1 else 0] for s in range(splits)] for own in columns)
    return list(zip(train, validation, test))


def parts_of(split: Any, name: str) -> Sequence[Any]:
    """Train, validation and test of a sequence, or of a mapping with these keys."""
    if isinstance(split, Mapping):
        known = {spelling for spellings in SPELLINGS.values() for spelling in spellings}
        unknown = [key for key in split if key not in known]
        if unknown:
            raise ValueError(f"{name}: key {unknown[0]!r} is not allowed; choose train, validation (valid, val), test")
        found = {part: [split[key] for key in keys if key in split] for part, keys in SPELLINGS.items()}
        if not found["train"]:
            raise ValueError(f"{name}: it has no key 'train'")
        return [own[0] if own else [] for own in found.values()]
    try:
        size = len(split)
    except TypeError:
        raise ValueError(f"{name}: {type(split).__name__} is not allowed; expected train, validation and test") from None
    if size != 3:
        raise ValueError(f"{name}: {size} sets: expected train, validation and test")
    return split
