"""Labels as class numbers. Which texts and numbers are classes, unknown or refused is the rule of the library, for files as well."""

from __future__ import annotations

import datetime
from typing import Any, Sequence

import numpy as np
import scipy.sparse

from . import _core
from ._masks import plain

#: Labels of more different complex numbers are a target of regression; the limit of real ones is the library's.
_MOST_FRACTIONS = 20


def is_unknown(label: Any) -> bool:
    """None, NaN, NaT, pandas.NA, a masked entry: what is not equal to itself."""
    try:
        return label is None or label is np.ma.masked or bool(label != label)
    except (TypeError, ValueError):
        return not isinstance(label, (np.ndarray, list, tuple))


def label_array(labels: Any) -> np.ndarray:
    """Labels before NumPy makes texts of what is none; None where an array masks them."""
    labels = plain(labels)
    if scipy.sparse.issparse(labels):
        raise ValueError("labels: a sparse matrix is not allowed; expected one label for each node")
    if np.ma.isMaskedArray(labels):
        own = np.ma.getdata(labels)
        if np.ma.is_masked(labels):
            own = own.astype(object)
            own[np.ma.getmaskarray(labels)] = None
        return own
    if isinstance(labels, (list, tuple)):
        for node, label in enumerate(labels):
            if isinstance(label, (dict, set, frozenset)):
                raise ValueError(f"labels: node {node}: {label!r} is not allowed; expected one label, a number or a text")
        lengths = {np.shape(label) if isinstance(label, (list, tuple, np.ndarray)) else () for label in labels}
        if len(lengths) > 1 or any(label is np.ma.masked for label in labels):
            own = np.empty(len(labels), object)
            own[:] = labels
            return own
    array = np.asarray(labels)
    if array.dtype.kind in "USb" or array.dtype.kind in "iufc" and isinstance(labels, (list, tuple)):
        if not isinstance(labels, np.ndarray):
            own = np.asarray(labels, dtype=object)
            kinds = {_kind(label) for label in own.ravel()}
            if len(kinds) > 1:
                return own
    return array.astype(object) if array.dtype.kind == "T" else array


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, bytes):
        return "bytes"
    return "boolean" if isinstance(label, (bool, np.bool_)) else "number"


def _known(array: np.ndarray) -> np.ndarray:
    """Which labels are known, before the rule of the library."""
    if array.dtype == object or array.dtype.kind in "fcmM":
        return np.array([not is_unknown(label) for label in array], bool)
    return np.ones(array.shape, bool)


def _of_objects(values: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Labels of one kind as an array of that kind."""
    own: list[Any] = []
    for node, label in zip(nodes, values):
        if isinstance(label, np.ndarray) and label.ndim == 0:
            label = label.item()
        if isinstance(label, (list, tuple, dict, set, frozenset, np.ndarray)):
            raise ValueError(f"labels: node {node}: {label!r} is not allowed; expected one label, a number or a text")
        own.append(label)
    kinds = {_kind(label) for label in own}
    if "text" in kinds and len(kinds) > 1:
        raise ValueError("labels: texts and other values are not allowed together")
    if len(kinds) > 1:
        raise ValueError(f"labels: {' and '.join(sorted(kinds))} labels are not allowed together")
    if own and all(hasattr(label, "to_numpy") and isinstance(label, (datetime.date, datetime.timedelta)) for label in own):
        own = [label.to_numpy() for label in own]  # pandas' times
    elif own and all(type(label) is datetime.date for label in own):
        return np.array(own, "M8[D]")
    elif own and all(isinstance(label, datetime.datetime) and label.tzinfo is None for label in own):
        return np.array(own, "M8[us]")
    elif own and all(isinstance(label, datetime.timedelta) for label in own):
        return np.array(own, "m8[us]")
    return np.array(own)


def _check_signs(values: Any, minus_one: bool) -> None:
    """The classes -1 and 1 of other libraries: half of the labels would be unknown without a word."""
    if minus_one and len(values) == 2 and values[0] == -1 and values[1] == 1:
        raise ValueError("labels: -1 and 1 alone are not allowed; -1 means unknown: write the classes as 0 and 1, or as texts")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _encode_texts(
    array: np.ndarray, known: np.ndarray, minus_one: bool, missing: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    texts = [str(text) if own else "" for text, own in zip(array.tolist(), known)]
    numbers = {text: _number(text) for text in set(texts) if text.strip()}
    if minus_one:
        _check_signs(sorted(set(numbers.values())), missing is None or not any(text in missing for text in numbers))
    else:
        for node, text in enumerate(texts):
            if numbers.get(text) == -1:
                raise ValueError(
                    f"labels[{node}]: label {text!r} is not allowed; among texts it means unknown: pass numbers, or None where unknown"
                )
    for node, text in enumerate(texts):
        if not text.isascii() and text.encode("utf-8", "replace").decode() != text:
            raise ValueError(f"labels[{node}]: label {text!r} is not allowed; it is no Unicode text")
    codes, names = _core.encode_text_labels(texts, missing)
    return codes, np.array(names, dtype=str)


def _words(missing: Any) -> list[str] | None:
    if missing is None:
        return None
    if isinstance(missing, str):
        return [missing]
    if not all(isinstance(word, str) for word in missing):
        raise ValueError(f"missing_labels: {missing!r} is not allowed; expected a list of texts that mean an unknown label")
    return list(missing)


def encode(labels: Any, count: int, minus_one: bool, missing_labels: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers (-1: unknown) and classes. None, NaN and the like are unknown.

    :param minus_one: among numbers, -1 is unknown as well, and smaller whole ones are errors
    :param missing_labels: texts that are unknown; None: none, and words that usually mean a missing value are errors
    """
    missing = _words(missing_labels)
    array = label_array(labels)
    if array.ndim != 1 or array.shape[0] != count:
        hint = ""
        if array.ndim == 2 and array.shape[0] == count:
            hint = "; labels.ravel() of one column" if array.shape[1] == 1 else "; of one-hot rows take labels.argmax(axis=1)"
        raise ValueError(f"labels: shape {array.shape} is not allowed; expected one label for each of {count} nodes{hint}")
    if array.dtype.kind == "V":
        raise ValueError(f"labels: {array.dtype} is not allowed; expected numbers or texts")
    known = _known(array)
    values = array[known]
    if array.dtype == object:
        values = _of_objects(values, np.flatnonzero(known))
    if values.dtype.kind in "US":
        bytes_given = values.dtype.kind == "S"
        texts = np.full(count, "", object)
        texts[known] = [text.decode("latin-1") for text in values.tolist()] if bytes_given else values.tolist()
        codes, classes = _encode_texts(texts, known, minus_one, missing)
        if bytes_given:
            classes = np.array([name.encode("latin-1") for name in classes.tolist()], "S" if len(classes) == 0 else None)
        return codes, classes
    if missing is not None and values.dtype.kind in "iuf":  # words that are numbers
        numbers = [_number(word) for word in missing]
        own = np.isin(values, [number for number in numbers if number == number])
        known[np.flatnonzero(known)[own]] = False
        values = values[~own]
    return _encode_values(values, known, minus_one)


def same_classes(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of the classes ``own`` each of ``others`` is, -1: none. Texts of one number are one class."""
    if own.dtype.kind in "US" and others.dtype.kind == own.dtype.kind:
        texts = [*own.tolist(), *others.tolist()]
        if own.dtype.kind == "S":
            texts = [text.decode("latin-1") for text in texts]
        codes, _ = _core.encode_text_labels(texts, [])
        number = {code: i for i, code in enumerate(codes[: len(own)].tolist())}
        return np.array([number.get(code, -1) for code in codes[len(own):].tolist()], int)
    if own.dtype.kind in "fcmM" and others.dtype.kind == own.dtype.kind:
        others = others.astype(own.dtype)
    number = {label: i for i, label in enumerate(own.tolist())}
    return np.array([number.get(label, -1) for label in others.tolist()], int)


def _encode_values(values: np.ndarray, known: np.ndarray, minus_one: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of numbers, times and booleans."""
    kind = values.dtype.kind
    if kind in "fc" and not np.isfinite(values).all():
        node = np.flatnonzero(known)[~np.isfinite(values)][0]
        raise ValueError(f"labels[{node}]: {values[~np.isfinite(values)][0]} is not allowed; a number must be finite, or NaN where unknown")
    try:
        classes, numbers = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"labels: {error}") from None
    if kind in "iuf" and minus_one:
        _check_signs(classes, True)
        if ((classes < -1) & (classes == np.floor(classes))).any():
            texts = np.full(len(known), "", object)
            texts[known] = [str(value) for value in values.tolist()]
            _core.encode_text_labels(texts.tolist(), None)  # throws and names the node
    if kind in "iuf":
        counted = classes if minus_one else classes[classes >= 0]  # of a classifier, -1 and less are classes
        _core.encode_text_labels([str(value) for value in counted.tolist()], None)  # throws where they are no classes
    elif kind == "c" and len(classes) > _MOST_FRACTIONS:
        raise ValueError(f"labels: {len(classes)} different complex numbers are not allowed; they look like a continuous target")
    if kind == "O" and len({str(name) for name in classes}) < len(classes):
        raise ValueError("labels: two classes print alike; write them as texts or numbers")
    codes = np.full(len(known), -1, np.int32)
    codes[known] = numbers
    if kind in "iuf" and minus_one and (classes == -1).any():
        own = int(np.flatnonzero(classes == -1)[0])
        codes = np.where(codes == own, -1, codes - (codes > own)).astype(np.int32)
        classes = np.delete(classes, own)
    return codes, classes
