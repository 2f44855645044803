"""Labels as class numbers. Which texts and numbers are classes, unknown or refused is the rule of the library, for files as well."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import numbers
from typing import Any, Iterator, Sequence

import numpy as np
import scipy.sparse

from . import _checks, _core
from ._masks import plain

#: Kinds of numbers that are labels; others, such as fractions, print as texts.
_NUMBERS = (int, float, complex, np.number, decimal.Decimal)


@contextlib.contextmanager
def called(name: str) -> Iterator[None]:
    """Errors of this module inside, which say "labels", say the name of the argument that holds them."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("labels"):
            raise
        raise ValueError(name + str(error).removeprefix("labels")) from None


def is_unknown(label: Any) -> bool:
    """None, NaN, NaT, pandas.NA, a masked entry: what is not equal to itself."""
    try:
        return label is None or label is np.ma.masked or bool(label != label)
    except (TypeError, ValueError, ArithmeticError):
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
        labels = own
    dtype = None if hasattr(labels, "columns") else getattr(labels, "dtype", None)
    if hasattr(dtype, "na_value") and not isinstance(dtype, np.dtype) and labels.isna().any():
        labels = labels.astype(object)  # pandas' own types: NumPy would make floats of whole numbers
    if isinstance(labels, (list, tuple)):
        for node, label in enumerate(labels):
            if isinstance(label, (dict, set, frozenset)):
                raise ValueError(f"labels: node {node}: {label!r} is not allowed; expected one label, a number or a text")
        lengths = {np.shape(label) if isinstance(label, (list, tuple, np.ndarray)) else () for label in labels}
        if len(lengths) > 1 or any(label is np.ma.masked for label in labels):
            own = np.empty(len(labels), object)
            own[:] = labels
            return _exact_texts(own)
    array = np.asarray(labels)
    if array.dtype.kind in "USb" or array.dtype.kind in "iufc" and isinstance(labels, (list, tuple)):
        if not isinstance(labels, np.ndarray):
            own = np.asarray(labels, dtype=object)
            kinds = {_kind(label) for label in own.ravel()}
            if len(kinds) > 1 or kinds == {"text"} or _would_round(own.ravel(), array):
                return _exact_texts(own)
            if kinds == {"bytes"}:
                _check_bytes(own.ravel())
    if array.dtype == object:
        return _exact_texts(array)
    return array.astype(object) if array.dtype.kind == "T" else array


def _exact_texts(array: np.ndarray) -> np.ndarray:
    """Objects whose texts are str itself: str() of a member of an enumeration is its name, which NumPy cuts off."""
    if any(isinstance(label, str) and type(label) is not str for label in array.ravel()):
        own = np.empty(array.shape, object)
        for place, label in np.ndenumerate(array):
            own[place] = str.__str__(label) if isinstance(label, str) else label
        return own
    return array


def _check_bytes(labels: Any) -> None:
    for label in labels:
        if label.endswith(b"\0"):
            raise ValueError(f"labels: {label!r} is not allowed; NumPy cuts off \\0 at the end")


def _would_round(labels: Any, array: np.ndarray) -> bool:
    """Whether an array of floating-point numbers has lost digits of whole numbers."""
    return array.dtype.kind in "fc" and any(
        isinstance(label, numbers.Integral) and abs(int(label)) > 2**53 for label in labels
    )


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, bytes):
        return "bytes"
    return "boolean" if isinstance(label, (bool, np.bool_)) else "number"


def known_labels(array: np.ndarray) -> np.ndarray:
    """Which labels are known, before the rule of the library.

    :param array: n labels, as label_array() gives them
    """
    if array.dtype == object:
        return np.array([not is_unknown(label) for label in array], bool)
    return array == array if array.dtype.kind in "fcmM" else np.ones(array.shape, bool)


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
    if any(isinstance(label, numbers.Number) and not isinstance(label, (bool, np.bool_, np.timedelta64)) for label in own):
        return _of_numbers(own, nodes)
    if kinds == {"bytes"}:
        _check_bytes(own)
    if kinds == {"text"}:
        _checks.texts(lambda i: f"labels[{nodes[i]}]: label", own)  # NumPy cuts off \0
    return np.array(own)


def _rounded(label: int | float | decimal.Decimal) -> float:
    try:
        return float(label)
    except OverflowError:
        return math.inf


def _of_numbers(own: list[Any], nodes: np.ndarray) -> np.ndarray:
    """Numbers as an array, of objects where a NumPy type would round them."""
    for node, label in zip(nodes, own):
        if isinstance(label, numbers.Number) and not isinstance(label, _NUMBERS):
            raise ValueError(f"labels[{node}]: {label!r} is not allowed; expected a whole or floating-point number, or a text")
        if isinstance(label, (int, float, decimal.Decimal)) and math.isinf(_rounded(label)):
            raise ValueError(f"labels[{node}]: {label!r} is not allowed; a number must be finite, at most 1.8e308, or NaN where unknown")
    array = np.array(own)
    if _would_round(own, array):
        array = np.empty(len(own), object)
        array[:] = own
    return array


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
    texts: list[str], minus_one: bool, missing: Sequence[str] | None, signs: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Of texts without blanks around them, "" where unknown."""
    values = {text: _number(text) for text in set(texts) if text.strip()}
    if minus_one:
        _check_signs(sorted(set(values.values())), missing is None or not any(text in missing for text in values))
    elif not signs and -1 in values.values():
        node = next(node for node, text in enumerate(texts) if values.get(text) == -1)
        raise ValueError(
            f"labels[{node}]: label {texts[node]!r} is not allowed; among texts it means unknown: pass numbers, or None where unknown"
        )
    _checks.texts(lambda node: f"labels[{node}]: label", texts)
    codes, names = _core.encode_text_labels(texts, missing, not signs)
    return codes, np.array(names, dtype=str)


def missing_words(missing: Any) -> list[str] | None:
    """Words that mean an unknown label, of one or several."""
    return _checks.text_list("missing_labels", missing, "a list of texts that mean an unknown label")


def encode(
    labels: Any, count: int, minus_one: bool, missing_labels: Any = None, *, signs: bool = False, of: str = "nodes"
) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers (-1: unknown) and classes. None, NaN and the like are unknown.

    :param minus_one: among numbers, -1 is unknown as well, and smaller whole ones are errors
    :param missing_labels: texts that are unknown; None: none, and words that usually mean a missing value are errors
    :param signs: among texts, -1 is a class
    :param of: what messages call those that have labels
    """
    missing = missing_words(missing_labels)
    array = label_array(labels)
    if array.ndim != 1 or array.shape[0] != count:
        hint = ""
        if array.ndim == 2 and array.shape[0] == count:
            hint = "; labels.ravel() of one column" if array.shape[1] == 1 else "; of one-hot rows take labels.argmax(axis=1)"
        raise ValueError(f"labels: shape {array.shape} is not allowed; expected one label for each of {count} {of}{hint}")
    if array.dtype.kind == "V":
        raise ValueError(f"labels: {array.dtype} is not allowed; expected numbers or texts")
    known = known_labels(array)
    values = array[known]
    if array.dtype == object:
        values = _of_objects(values, np.flatnonzero(known))
    if values.dtype.kind in "US":
        bytes_given = values.dtype.kind == "S"
        blanks: Any = _core.blanks.encode() if bytes_given else _core.blanks + _core.fixed_blank
        stripped = [text.strip(blanks) for text in values.tolist()]
        texts = np.full(count, "", object)
        texts[known] = [text.decode("latin-1") for text in stripped] if bytes_given else stripped
        codes, classes = _encode_texts(texts.tolist(), minus_one, missing, signs)
        if bytes_given:
            classes = np.array([name.encode("latin-1") for name in classes.tolist()], "S" if len(classes) == 0 else None)
        return codes, classes
    if missing is not None and (values.dtype.kind in "iuf" or values.dtype == object):  # words that are numbers
        words = [_number(word) for word in missing]
        own = np.isin(values, [number for number in words if number == number])
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
    exact = kind == "O" and all(isinstance(value, _NUMBERS) and not isinstance(value, complex) for value in values)
    real = kind in "iuf" or exact
    if kind in "fc" and not np.isfinite(values).all():
        node = np.flatnonzero(known)[~np.isfinite(values)][0]
        raise ValueError(f"labels[{node}]: {values[~np.isfinite(values)][0]} is not allowed; a number must be finite, or NaN where unknown")
    try:
        classes, numbers = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"labels: {error}") from None
    if real and minus_one:
        _check_signs(classes, True)
        if ((classes < -1) & (classes == np.floor(classes))).any():
            texts = np.full(len(known), "", object)
            texts[known] = [str(value) for value in values.tolist()]
            _core.encode_text_labels(texts.tolist(), None)  # throws and names the node
    if real:
        counted = classes if minus_one else classes[classes >= 0]  # of a classifier, -1 and less are classes
        _core.encode_text_labels([str(value) for value in counted.tolist()], None)  # throws where they are no classes
    elif kind == "c" and len(classes) > _core.most_fractions:
        raise ValueError(f"labels: {len(classes)} different complex numbers are not allowed; they look like a continuous target")
    if kind == "O" and len({str(name) for name in classes}) < len(classes):
        raise ValueError("labels: two classes print alike; write them as texts or numbers")
    codes = np.full(len(known), -1, np.int32)
    codes[known] = numbers
    if real and minus_one and (classes == -1).any():
        own = int(np.flatnonzero(classes == -1)[0])
        codes = np.where(codes == own, -1, codes - (codes > own)).astype(np.int32)
        classes = np.delete(classes, own)
    if exact and np.array(classes.tolist()).dtype.kind in "iu":
        classes = np.array(classes.tolist())
    return codes, classes
