"""Searches on the splits of a graph."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import sheafnn
from sheafnn import SheafClassifier, grid_search


@pytest.fixture(scope="module")
def found(graph):
    grid = {"learning_rate": [1e-6, 0.01], "stalk_dim": [2]}
    return grid_search(graph, grid, SheafClassifier("nsd", epochs=40), splits=[2, 0])


def test_the_best_mean_of_the_validation_nodes(graph, found):
    assert found.best_params == {"learning_rate": 0.01, "stalk_dim": 2} and found.best_index == 1
    results = found.results
    for i, rate in enumerate((1e-6, 0.01)):
        for split in (0, 2):
            alone = SheafClassifier("nsd", epochs=40, stalk_dim=2, learning_rate=rate).fit(graph, split=split)
            assert results[f"split{split}_test_score"][i] == alone.result_["validation_accuracy"]
    scores = np.stack([results["split2_test_score"], results["split0_test_score"]])
    assert (results["mean_test_score"] == scores.mean(axis=0)).all() and found.best_score == scores.mean(axis=0).max()
    assert results["rank_test_score"].tolist() == [2, 1]
    assert results["param_learning_rate"].tolist() == [1e-6, 0.01]
    assert results["params"][1] == found.best_params
    assert (results["mean_fit_time"] > 0).all()


def test_the_best_classifier_is_fitted_and_knows_its_split(graph, found):
    alone = SheafClassifier("nsd", epochs=40, stalk_dim=2, learning_rate=0.01).fit(graph, split=2)
    assert (found.best_classifier.predict_proba(graph) == alone.predict_proba(graph)).all()
    assert found.best_classifier.score(graph) == alone.score(graph) == alone.result_["test_accuracy"]
    assert np.isnan(found.best_classifier.result_["test_accuracy"])


def test_test_nodes_are_never_seen(graph, found):
    labels = graph.labels
    labels[np.concatenate([graph.splits[0].test, graph.splits[2].test])] = 0
    other = sheafnn.Dataset.from_numpy(graph.edges, graph.features, labels, splits=graph.splits)
    same = np.setdiff1d(np.arange(300), np.concatenate([graph.splits[0].test, graph.splits[2].test]))
    splits = [[np.intersect1d(part, same) for part in graph.splits[s][:2]] + [graph.splits[s].test] for s in (0, 2)]
    a, b = (
        grid_search(data.with_splits(splits), {"channels": [4, 8]}, SheafClassifier(stalk_dim=2, epochs=10, preset="small"))
        for data in (graph, other)
    )
    assert (a.results["mean_test_score"] == b.results["mean_test_score"]).all()


def test_processes_give_the_same(graph):
    options = dict(classifier=SheafClassifier(stalk_dim=2, epochs=5), splits=[0, 1])
    one, two = (grid_search(graph, [{"channels": [4, 8]}, {"dropout": [0.5]}], n_jobs=jobs, **options) for jobs in (None, 2))
    assert (one.results["mean_test_score"] == two.results["mean_test_score"]).all()
    assert one.results["param_dropout"].tolist() == [None, None, 0.5]
    assert (one.best_classifier.predict_proba(graph) == two.best_classifier.predict_proba(graph)).all()


def test_losses_are_small(graph):
    found = grid_search(graph, {"learning_rate": [1e-6, 0.01]}, SheafClassifier(stalk_dim=2, epochs=40), splits=[0], scoring="validation_loss")
    assert found.best_score == found.results["mean_test_score"].min()


def test_bad_arguments_are_named(graph):
    for call, error, message in (
        (lambda: grid_search(graph.features, {}), TypeError, "data: csr_matrix"),
        (lambda: grid_search(graph.with_splits([]), {}), ValueError, "make_splits"),
        (lambda: grid_search(graph, {}, splits=[10]), ValueError, "splits: 10"),
        (lambda: grid_search(graph, {}, splits=[]), ValueError, "splits: an empty list"),
        (lambda: grid_search(graph, {}, splits=1), ValueError, "splits: 1 is not allowed; expected a list"),
        (lambda: grid_search(graph, {}, splits=[0, 0]), ValueError, "splits: 0 is not allowed twice"),
        (lambda: grid_search(graph, {}, sheafnn.SheafRegressor()), TypeError, "classifier: SheafRegressor is not allowed"),
        (lambda: grid_search(graph, {"layers": [1]}, SheafClassifier("nsd", "diagonal", 2, epochs=1), splits=[0], scoring="validation_metric"),
         ValueError, "scoring: 'validation_metric' is not allowed; no candidate has one on all splits; training={'stop_on'"),
        (lambda: grid_search(graph, []), ValueError, r"grid: \[\] is not allowed"),
        (lambda: grid_search(graph, {}, scoring="accuracy"), ValueError, "scoring: 'accuracy'"),
        (lambda: grid_search(graph, {"chanels": [4]}), ValueError, "chanels"),
        (lambda: grid_search(graph.with_splits([(graph.splits[0].train, [], [])]), {}), ValueError, "split 0 has no validation nodes"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_cross_validation_of_a_dataset_names_the_graph_aware_search(karate):
    with pytest.raises(TypeError, match="sheafnn.grid_search"):
        GridSearchCV(SheafClassifier(), {"channels": [4]}).fit(karate)


def test_cross_validation_with_edges_names_the_graph_aware_search(graph):
    for edges in (graph.edges, graph.adjacency):
        search = GridSearchCV(SheafClassifier(stalk_dim=2, epochs=2), {"channels": [4, 8]}, cv=2)
        with pytest.raises(ValueError) as error:
            search.fit(graph.features, graph.labels, edges=edges)
        text = str(error.value)
        assert text.count("use sheafnn.grid_search(data, grid)") == 1
        with pytest.raises(ValueError, match="sheafnn.grid_search"):
            cross_val_score(SheafClassifier(epochs=2), graph.features, graph.labels, cv=2, params={"edges": edges})
        with pytest.raises(ValueError, match="sheafnn.grid_search"):
            cross_val_predict(SheafClassifier(epochs=2), graph.features, graph.labels, cv=2, params={"edges": edges})
