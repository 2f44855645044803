"""Labels: which are classes, which are unknown, which are refused; and what files keep of them."""

import datetime
import decimal
import enum
import fractions

import networkx
import numpy as np
import pandas
import pytest

import sheafnn
from sheafnn import SheafClassifier


def labelled(labels, **more):
    return sheafnn.Dataset.from_numpy([[0, 1]], np.eye(len(labels)), labels, **more)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([np.nan, "a", "b", "a"]), np.array([None, "a", "b", "a"]).astype(str), ["NA", "a", "b", "a"],
        np.array([b"nan", b"a", b"b", b"a"]), pandas.Series(["#N/A", "a", "b", "a"]), ["unknown", "a", "b", "a"],
        pandas.Categorical(["NaT", "a", "b", "a"]),
    ],
)
def test_words_for_a_missing_value_are_refused(labels):
    with pytest.raises(ValueError, match=r"labels\[0\].*missing_labels"):
        labelled(labels)
    with pytest.raises((ValueError, TypeError), match=r"^y\[0\].*missing_labels|bytes"):  # scikit-learn takes no bytes
        SheafClassifier().fit(np.eye(4), labels)


def test_words_may_be_unknown_or_classes():
    data = labelled(["nan", "a", "NA", "a"], missing_labels=["nan"])
    assert data.classes.tolist() == ["NA", "a"] and data.codes.tolist() == [-1, 1, 0, 1]
    assert labelled(["nan", "a", "NA", "a"], missing_labels=[]).classes.tolist() == ["NA", "a", "nan"]
    graph = networkx.path_graph(3)
    for node, label in enumerate(["x", "none", "y"]):
        graph.nodes[node].update(features=[1.0], label=label)
    assert sheafnn.Dataset.from_networkx(graph, missing_labels="none").codes.tolist() == [0, -1, 1]
    features = np.arange(16.0).reshape(8, 2)
    model = SheafClassifier(stalk_dim=2, epochs=2, validation_fraction=0).fit(features, ["x", "y", "nan", "nan"] * 2, missing_labels=["nan"])
    assert model.classes_.tolist() == ["x", "y"]
    assert 0 <= model.score(features, ["x", "y", None, None] * 2) <= 1


@pytest.mark.parametrize(
    "labels", [np.array(["b", "a", "b"], getattr(np.dtypes, "StringDType", lambda: object)()), pandas.Series(["b", "a", "b"], dtype="string")]
)
def test_texts_of_other_types(labels):
    assert labelled(labels).classes.tolist() == ["a", "b"] and labelled(labels).codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("labels", [["", "a", "b", "a"], ["-1", "a", "b", "a"], ["  ", "a", "b", "a"]])
def test_empty_texts_and_minus_one_are_unknown(labels):
    assert labelled(labels).codes.tolist() == [-1, 0, 1, 0]


def test_texts_of_numbers_are_classes_by_value():
    data = labelled(["10", "9", "9.0", "-1"])
    assert data.classes.tolist() == ["9", "10"] and data.codes.tolist() == [1, 0, 0, -1]


@pytest.mark.parametrize(
    "labels",
    [
        np.ma.masked_array([7, 3, 5, 3], [1, 0, 0, 0]), np.ma.masked_array(["x", "a", "b", "a"], [1, 0, 0, 0]),
        np.ma.masked_array([0.5, 3, 5, 3], [1, 0, 0, 0]), [np.ma.masked, 3, 5, 3], pandas.array([None, 3, 5, 3], "Int64"),
        np.array([np.nan, 3, 5, 3], np.float16), [-1.0, 3.0, 5.0, 3.0], np.array([np.datetime64("NaT"), 3, 5, 3], "M8[s]"),
        [pandas.NaT, *pandas.to_datetime(["2020", "2021", "2020"])],
    ],
)
def test_unknown_entries(labels):
    data = labelled(labels)
    assert data.codes.tolist() == [-1, 0, 1, 0]
    assert data.labels.tolist()[0] in (None, -1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([-1, 1, 1, -1], "labels: -1 and 1 alone"),
        (np.array([-1.0, 1.0, 1.0]), "labels: -1 and 1 alone"),
        (["-1", "1", "1"], "labels: -1 and 1 alone"),
        (np.array([1, -1, 1], np.int8), "labels: -1 and 1 alone"),
        ([[0], [1, 2], [0]], "labels: node 0: [0] is not allowed; expected one label"),
        ([[0, 1], [1, 0], [0, 1]], "labels: shape (3, 2) is not allowed; expected one label for each of 3 nodes; of one-hot rows"),
        ([["a"], ["b"], ["a"]], "labels: shape (3, 1)"),
        ([{"a"}, {"b"}, {"a"}], "labels: node 0: {'a'}"),
        ([True, 2, 3], "boolean and number"),
        ([b"a", "b", "a"], "texts and other values"),
        ([0.0, np.inf, 1.0], "labels[1]: inf"),
        (np.array([(1, 2)] * 3, "i4,i4"), "labels: [('f0'"),
        ([-3.0, 0.0, 1.0], "labels[0]: label -3.0 is not allowed"),
        (["a\0", "a", "b"], "labels[0]: label 'a\\x00' is not allowed; a text must not hold the character \\0"),
        (np.array(["a", "b", "a\0b"]), "labels[2]: label 'a\\x00b'"),
        (np.array(["a", "a\0", "b"], object), "labels[1]: label 'a\\x00'"),
        ([b"a", b"a\0", b"b"], "labels: b'a\\x00' is not allowed"),
        ([fractions.Fraction(1, 3), 1, 2], "labels[0]: Fraction(1, 3) is not allowed"),
        ([1, 10**400, 2], "a number must be finite"),
        ([decimal.Decimal(0), decimal.Decimal("inf"), 1], "labels[1]: Decimal('Infinity') is not allowed"),
        ([decimal.Decimal(-2), decimal.Decimal(0), 1], "labels[0]: label -2 is not allowed"),
        ([decimal.Decimal(-1), decimal.Decimal(1), -1], "labels: -1 and 1 alone"),
        ([2**63 + 1, -2, 2**63 + 3], "labels[1]: label -2 is not allowed"),
        (["\ud800", "a", "b"], "labels[0]: label '\\ud800' is not allowed; it is not Unicode text"),
    ],
)
def test_what_is_no_label_is_named(labels, message):
    with pytest.raises(ValueError) as error:
        labelled(labels)
    assert message in str(error.value)


def test_lists_of_networkx_are_named():
    graph = networkx.path_graph(3)
    for node, label in enumerate([0, [1, 2], 0]):
        graph.nodes[node].update(features=[1.0], label=label)
    with pytest.raises(ValueError, match=r"labels: node 1: \[1, 2\] is not allowed"):
        sheafnn.Dataset.from_networkx(graph)


def test_a_continuous_target_is_refused_everywhere(random):
    import types

    target = random.random(400)
    some = np.where(np.arange(400) % 7 == 0, np.nan, target)
    features, edges = np.ones((400, 2)), [[0, 1]]
    graph = networkx.path_graph(400)
    for node in graph:
        graph.nodes[node].update(features=[1.0], label=target[node])
    pyg = types.SimpleNamespace(x=features, y=target, edge_index=np.array(edges).T)
    nodes = pandas.DataFrame({"x": target, "label": target})
    for make in (
        lambda: sheafnn.Dataset.from_numpy(edges, features, target),
        lambda: sheafnn.Dataset.from_numpy(edges, features, target.astype(np.float32)),
        lambda: sheafnn.Dataset.from_numpy(edges, features, target.astype(str)),
        lambda: sheafnn.Dataset.from_numpy(edges, features, some),
        lambda: sheafnn.Dataset.from_pyg(pyg),
        lambda: sheafnn.Dataset.from_networkx(graph),
        lambda: sheafnn.Dataset.from_pandas(nodes, None),
        lambda: SheafClassifier().fit(features, target),
        lambda: SheafClassifier().fit(features, some),
        lambda: sheafnn.Dataset.from_numpy(edges, features, target * 1j),
        lambda: sheafnn.Dataset.from_numpy(edges, features, [decimal.Decimal(float(number)) for number in target]),
    ):
        with pytest.raises(ValueError, match="(?i)continuous"):
            make()


STORED = {
    "int": np.array([3, 7]), "int8": np.array([3, 7], np.int8), "int64": np.array([2**62, 2**62 + 1]),
    "uint64": np.array([2**63, 2**63 + 1], np.uint64), "0 and 1": np.array([0, 1], np.int16), "bool": np.array([False, True]),
    "float64": np.array([0.1, 0.25]), "float32": np.array([0.1, 0.25], np.float32), "float16": np.array([0.1, 0.25], np.float16),
    "longdouble": np.array([0.1, 0.25], np.longdouble), "texts": np.array(["a", "b"]), "unicode": np.array(["é", "李"]),
    "breaks": np.array(["a\nb", 'c,"d']), "digits": np.array(["9", "10"]), "bytes": np.array([b"x", b"\xffyz"]),
    "days": np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "ns": np.array(["2020-01-01", "2021-01-01T01:02:03.123456789"], "M8[ns]"),
    "years": np.array(["1830", "2021"], "M8[Y]"), "25 s": np.array([3, 7], "M8[25s]"), "timedelta": np.array([1, 2], "m8[D]"),
    "timedelta ns": np.array([-1, 2], "m8[ns]"), "complex": np.array([1j, 2j]), "complex64": np.array([0.1j, 2 + 0.1j], np.complex64),
    "big-endian": np.array([3, 7], ">i4"),
}


@pytest.fixture(scope="module")
def ring():
    random = np.random.default_rng(0)
    codes = random.integers(0, 2, 60)
    features = np.stack([codes * 2 - 1 + 0.1 * random.normal(size=60), random.normal(size=60)], axis=1)
    return np.stack([np.arange(60), (np.arange(60) + 1) % 60], axis=1), features, codes


@pytest.mark.parametrize("kind", STORED)
def test_files_keep_labels(tmp_path, ring, kind):
    edges, features, codes = ring
    classes = STORED[kind]
    data = sheafnn.Dataset.from_numpy(edges, features, classes[codes]).make_splits(1)
    model = SheafClassifier(stalk_dim=2, epochs=10).fit(data)
    model.save(tmp_path / "m.safetensors")
    loaded = SheafClassifier.load(tmp_path / "m.safetensors")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert (loaded.classes_ == classes).all() and (model.classes_ == classes).all()
    assert (loaded.predict(data) == model.predict(data)).all()
    assert loaded.score(data) == model.score(data)
    assert loaded.score(features, classes[codes], edges=edges) == model.score(features, classes[codes], edges=edges)


def test_dates_of_python_are_numpys(tmp_path, ring):
    edges, features, codes = ring
    for kinds, dtype in (
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], "M8[D]"),
        ([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)], "M8[us]"),
        ([datetime.timedelta(1), datetime.timedelta(2)], "m8[us]"),
    ):
        assert sheafnn.Dataset.from_numpy(edges, features, [kinds[c] for c in codes]).classes.dtype == dtype


def test_labels_that_files_cannot_hold_are_refused(tmp_path, ring):
    edges, features, codes = ring
    kinds = [decimal.Decimal("0.5"), decimal.Decimal("1.5")]
    data = sheafnn.Dataset.from_numpy(edges, features, [kinds[c] for c in codes]).make_splits(1)
    model = SheafClassifier(stalk_dim=2, epochs=2).fit(data)
    with pytest.raises(ValueError, match="classes_: labels of type Decimal"):
        model.save(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("kind", "classes"), [("i", [3, 7]), ("f", [0.5, 2.5]), ("b", [False, True]), ("U", ["a", "b"]), ("i", [0, 1])]
)
def test_older_files_load(tmp_path, ring, kind, classes):
    edges, features, codes = ring
    data = sheafnn.Dataset.from_numpy(edges, features, np.array(classes)[codes]).make_splits(1)
    model = SheafClassifier(stalk_dim=2, epochs=2).fit(data)
    model.model_.save(str(tmp_path / "m.safetensors"), {"class_kind": kind})
    loaded = SheafClassifier.load(tmp_path / "m.safetensors")
    assert loaded.classes_.tolist() == classes
    assert loaded.score(data) == model.score(data)
    with pytest.warns(UserWarning, match="the file does not say"):
        loaded.predict(features)


def test_a_file_with_other_classes_is_refused(tmp_path, ring):
    edges, features, codes = ring
    model = SheafClassifier(stalk_dim=2, epochs=2).fit(sheafnn.Dataset.from_numpy(edges, features, codes).make_splits(1))
    for more, message in (
        ({"class_dtype": "<i8", "class_data": "00" * 8}, "1 classes are not allowed; the network has 2"),
        ({"class_dtype": "<i8", "class_data": "0x"}, "class_data: "),
        ({"class_dtype": "O", "class_data": "00" * 16}, "class_data: "),
        ({"class_data": "00" * 16}, "class_data: "),
    ):
        model.model_.save(str(tmp_path / "m.safetensors"), more)
        with pytest.raises(RuntimeError, match=message):
            SheafClassifier.load(tmp_path / "m.safetensors")


class Drink(str, enum.Enum):
    TEA = "tea"
    TEAPOT = "teapot"


@pytest.mark.parametrize("form", [list, tuple, lambda own: np.array(own, object), pandas.Series, lambda own: [*own, None]])
def test_members_of_enumerations_are_their_texts(form):
    data = labelled(form([Drink.TEAPOT, Drink.TEA, Drink.TEAPOT]))
    assert data.classes.tolist() == ["tea", "teapot"] and data.codes.tolist()[:3] == [1, 0, 1]


def test_members_of_enumerations_in_a_training():
    model = SheafClassifier("nsd", "identity", 1, epochs=2, validation_fraction=0)
    assert model.fit(np.eye(4), [Drink.TEA, Drink.TEAPOT] * 2).classes_.tolist() == ["tea", "teapot"]


LARGE = 2**53  # LARGE + 1 is no double


@pytest.mark.parametrize(
    "labels",
    [
        pandas.array([LARGE + 1, LARGE, None], "Int64"), pandas.Series([LARGE + 1, LARGE, None], dtype="Int64"),
        pandas.Index([LARGE + 1, LARGE, None], dtype="UInt64"), pandas.Categorical([LARGE + 1, LARGE, None], [LARGE, LARGE + 1]),
        pandas.Series(pandas.Categorical([LARGE + 1, LARGE, None], [LARGE, LARGE + 1])), [LARGE + 1, LARGE, np.nan],
        [2**10 * LARGE + 1, 2**10 * LARGE, -1], [10 * LARGE**2 + 1, 10 * LARGE**2, None],
        [decimal.Decimal(LARGE + 1), decimal.Decimal(LARGE), decimal.Decimal("NaN")],
    ],
)
def test_large_numbers_stay_apart(labels):
    made = [labelled(labels)]
    if not isinstance(labels, list):  # of which pandas makes doubles
        made.append(sheafnn.Dataset.from_pandas(pandas.DataFrame({"x": [1.0, 2, 3]}).assign(label=pandas.Series(labels)), None))
    for data in made:
        assert data.codes.tolist() == [1, 0, -1]
        assert int(data.classes[1]) - int(data.classes[0]) == 1
        assert [int(label) for label in data.labels[:2]] == [int(label) for label in labels[:2]]


def test_small_types_of_pandas_stay_whole_numbers():
    for labels in (pandas.array([3, 7, None], "UInt8"), pandas.Categorical([3, 7, None]), pandas.array([3, 7, None], "Int16")):
        frame = pandas.DataFrame({"x": [1.0, 2, 3], "label": labels})
        for data in (labelled(labels), sheafnn.Dataset.from_pandas(frame, None)):
            assert data.classes.dtype.kind == "i" and data.labels.tolist() == [3, 7, -1]


def test_large_numbers_and_fractions_stay_apart():
    data = labelled([LARGE + 1, LARGE, 0.5])
    assert data.classes.tolist() == [0.5, LARGE, LARGE + 1] and data.codes.tolist() == [2, 1, 0]


def test_decimals_follow_the_rules_of_numbers():
    data = labelled([decimal.Decimal(text) for text in ("1", "1.0", "0.5", "-1")])
    assert data.classes.tolist() == [0.5, 1] and data.codes.tolist() == [1, 1, 0, -1]
    assert labelled([decimal.Decimal(3), decimal.Decimal(4)], missing_labels=["4"]).codes.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.ma.masked_array(np.array([3, 7, 7], np.uint8), [0, 0, 1]), [3, 7, -1]),
        (np.array([3, 7, -1], np.int8), [3, 7, -1]),
        (np.ma.masked_array(np.array([3, 2**63, 3], np.uint64), [0, 0, 1]), [3, 2**63, None]),
        (np.array([0, 1, "NaT"], "m8[s]"), [np.timedelta64(0, "s"), np.timedelta64(1, "s"), None]),
    ],
)
def test_an_unknown_label_is_no_other_one(labels, expected):
    assert labelled(labels).labels.tolist() == expected


def test_lengths_of_time_have_names():
    assert labelled(np.array([0, 1, 1], "m8[s]"))._core.class_names == ["0 seconds", "1 seconds"]


def test_blanks_around_texts_are_cut_off():
    for labels in (["a ", "a", "\xa0b"], np.array([" a", "a\t", "b"]), pandas.Series(["a\n", "a", "b"])):
        data = labelled(labels)
        assert data.classes.tolist() == ["a", "b"] and data.codes.tolist() == [0, 0, 1]
    assert labelled([b"a ", b"a", b"\xc3\xa0"]).classes.tolist() == [b"a", b"\xc3\xa0"]  # of bytes, ASCII's alone


@pytest.mark.parametrize("labels", [[b"a", b"b"], [1j, 2j], [0.5, 1.5], [decimal.Decimal(1), decimal.Decimal(2)]])
def test_what_scikit_learn_refuses(labels):
    assert len(labelled(labels).classes) == 2
    with pytest.raises((TypeError, ValueError), match="bytes|Complex|Unknown label type"):
        SheafClassifier("nsd", "identity", 1, epochs=2).fit(np.eye(8), labels * 4)
