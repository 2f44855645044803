"""SheafClassifier(search=...): what is tried, what is chosen, and what it never sees."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import sheafnn

LONG = 1e6  # seconds: time never ends these searches


def searched(data, **more):
    return sheafnn.SheafClassifier(search=LONG, epochs=12, threads=1, **more).fit(data)


@pytest.fixture(scope="module")
def found(karate):
    return searched(karate)


def choice(model):
    """The table without its times."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in model.search_]


def equal(a, b):
    return repr(a) == repr(b)  # NaN equals NaN


def test_the_table_and_the_choice(found):
    table = found.search_
    assert len(table) >= 12
    tried = [row for row in table if not row["error"]]
    assert {"nodes alone", "identity sheaf, low-pass"} <= {row["name"] for row in tried}
    assert {row["model"] for row in tried} >= {"nsd", "bsnn", "csnn"}
    best = table[0]
    assert best["round"] == 3 and best["splits"] == 4 and best["epochs"] == 12
    last = [row for row in tried if row["round"] == 3]
    assert best["validation_score"] == max(row["validation_score"] for row in last)
    assert all(0 <= row["validation_score"] <= 1 and row["seconds"] > 0 for row in tried)
    for row in table:
        if row["error"]:
            assert math.isnan(row["validation_score"]) and row["round"] == 0
    assert found.best_params_ == {key: best[key] for key in ("name", "model", "maps", "stalk_dim")}
    assert found.result_["preset"] == "search: " + best["name"]
    assert found.model_.kind == best["model"] and found.model_.stalk_dimension == best["stalk_dim"]
    assert found.n_iter_ <= 12


def test_the_same_twice(found, karate):
    again = searched(karate)
    assert equal(choice(again), choice(found))
    assert np.array_equal(again.predict_proba(karate), found.predict_proba(karate))


def test_labels_of_test_nodes_are_not_seen(found, karate):
    split = karate.splits[0]
    labels = karate.codes.copy()
    labels[split.test] = 1 - labels[split.test]
    other = sheafnn.Dataset.from_numpy(karate.edges, karate.features, labels, splits=[split])
    plain = sheafnn.Dataset.from_numpy(karate.edges, karate.features, karate.codes, splits=[split])
    assert equal(choice(searched(other)), choice(searched(plain)))


def test_saved_and_loaded(found, karate, tmp_path):
    found.save(tmp_path / "model.safetensors")
    loaded = sheafnn.SheafClassifier.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(karate), found.predict_proba(karate))
    assert loaded.model == found.best_params_["model"]
    pickled = pickle.loads(pickle.dumps(found))
    assert equal(pickled.search_, found.search_)
    assert np.array_equal(pickled.predict(karate), found.predict(karate))


def test_restrictions_and_features(graph):
    some = sheafnn.SheafClassifier(model="nsd", maps="diagonal", search=LONG, epochs=4)
    some.fit(graph.features, graph.labels, edges=graph.edges, train=np.arange(200))
    tried = [row for row in some.search_ if not row["error"]]
    assert tried and {(row["model"], row["maps"]) for row in tried} == {("nsd", "diagonal")}
    assert {row["error"] for row in some.search_ if row["model"] == "csnn"} == {"another model, maps or stalk_dim"}
    assert clone(some).search == LONG
    plain = some.set_params(search=None, maps="special-orthogonal", stalk_dim=2).fit(graph)
    assert not hasattr(plain, "search_") and not hasattr(plain, "best_params_")


def test_no_time_is_time_for_the_first(karate):
    first = sheafnn.SheafClassifier(search=1e-9, epochs=2).fit(karate)
    assert first.best_params_["name"] == "nodes alone"
    assert all(row["splits"] == 0 for row in first.search_)


@pytest.mark.parametrize("value", [0, -1, "60", True, float("nan"), float("inf")])
def test_refused_times(karate, value):
    with pytest.raises(ValueError, match="search: "):
        sheafnn.SheafClassifier(search=value).fit(karate)


def test_refused_beside_a_search(karate, graph):
    with pytest.raises(ValueError, match="preset: 'small' is not allowed"):
        sheafnn.SheafClassifier(search=1, preset="small").fit(karate)
    with pytest.raises(ValueError, match="no setting of the list is left"):
        sheafnn.SheafClassifier(search=1, model="flow").fit(karate)
    with pytest.raises(ValueError, match="validation"):
        sheafnn.SheafClassifier(search=1).fit(graph.features, graph.labels, edges=graph.edges, validation=np.empty(0, int))
