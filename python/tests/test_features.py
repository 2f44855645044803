"""What happens to features: tables of all kinds, missing values, names of columns."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sheafnn
from sheafnn import Dataset, SheafClassifier
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def table(name):
    random = np.random.default_rng(0)
    n = 400
    age, income = random.uniform(18, 80, n), np.exp(random.normal(10, 1, n))
    if name == "wine":
        return load_wine(return_X_y=True)
    if name == "breast cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "age and income":
        return np.c_[age, income], (age > 45).astype(int)
    if name == "incomes":
        return np.c_[income, age], (income > np.median(income)).astype(int)
    if name == "years and identifiers":
        year = random.integers(1990, 2021, n)
        return np.c_[year, 1e9 + random.permutation(n)], (year > 2005).astype(int)
    if name == "tiny and huge":
        small = random.normal(0, 1e-9, n)
        return np.c_[small, random.normal(0, 1e9, n)], (small > 0).astype(int)
    if name == "one positive column":
        return age[:, None], (age > 45).astype(int)
    raise ValueError(name)


@pytest.mark.parametrize(
    "name",
    ["wine", "breast cancer", "age and income", "incomes", "years and identifiers", "tiny and huge", "one positive column"],
)
@pytest.mark.parametrize("model", ["bsnn", "nsd", "csnn"])
def test_tables_reach_what_standardised_ones_do(name, model):
    X, y = table(name)
    order = np.random.default_rng(1).permutation(len(X))
    train, test = order[: len(X) * 3 // 4], order[len(X) * 3 // 4 :]
    maps = {} if model == "csnn" else {"maps": "special-orthogonal"}
    sheaf = SheafClassifier(model, stalk_dim=2, epochs=150, **maps).fit(X[train], y[train])
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], y[train])
    assert sheaf.score(X[test], y[test]) >= linear.score(X[test], y[test]) - 0.06


def test_the_treatment_is_told_kept_and_applied(tmp_path):
    X, y = table("age and income")
    model = SheafClassifier("nsd", stalk_dim=2, epochs=5).fit(X, y)
    assert model.feature_treatment_ == "2 columns: 1 centred and scaled, 1 with heavy tails by rank"
    model.save(tmp_path / "model.safetensors")
    loaded = SheafClassifier.load(tmp_path / "model.safetensors")
    copied = pickle.loads(pickle.dumps(model))
    for other in (loaded, copied):
        assert other.feature_treatment_ == model.feature_treatment_
        # One row: its statistics are not the training's.
        assert (other.predict_proba(X[:1]) == model.predict_proba(X[:1])).all()
    assert np.allclose(model.predict_proba(X)[:1], model.predict_proba(X[:1]), atol=1e-5)


def test_treatments_are_chosen_by_name():
    X, y = table("age and income")
    lines = {
        t: SheafClassifier("nsd", stalk_dim=2, epochs=1, feature_treatment=t).fit(X, y).feature_treatment_
        for t in ("automatic", "rows", "columns", "none")
    }
    assert lines["automatic"] == lines["columns"]
    assert lines["rows"] == "2 columns, rows scaled to sum 1"
    assert lines["none"] == "2 columns as they are"
    for old, new in ((True, "rows"), (False, "none")):
        model = SheafClassifier("nsd", stalk_dim=2, epochs=1, network={"normalise_features": old}).fit(X, y)
        assert model.feature_treatment_ == lines[new]
    with pytest.raises(ValueError, match="feature_treatment: 'ranks' is not allowed"):
        SheafClassifier(feature_treatment="ranks").fit(X, y)
    with pytest.raises(ValueError, match="feature_treatment says the same"):
        SheafClassifier("nsd", stalk_dim=2, feature_treatment="rows", network={"normalise_features": False}).fit(X, y)
    with pytest.raises(ValueError, match="the data decide it"):
        SheafClassifier("nsd", stalk_dim=2, network={"feature_plan": "rows; as-is*2"}).fit(X, y)


def test_bags_of_words_are_scaled_by_rows():
    data = sheafnn.synthetic(nodes=200)
    model = SheafClassifier("nsd", stalk_dim=2, epochs=1).fit(data)
    assert model.feature_treatment_ == "100 columns, rows scaled to sum 1"


@pytest.mark.parametrize("kind", ["NaN", "masked", "data frame", "NA", "sparse", "None"])
def test_missing_values_are_one_thing(kind):
    X, y = table("age and income")
    gaps = np.random.default_rng(2).random(X.shape) < 0.1
    expected = X.copy()
    expected[gaps] = np.nan
    given = {
        "NaN": expected,
        "masked": np.ma.MaskedArray(X, gaps),
        "data frame": pd.DataFrame(expected),
        "NA": pd.DataFrame(expected).astype("Float64"),
        "sparse": scipy.sparse.csr_matrix(expected),
        "None": np.where(gaps, None, X.astype(object)),
    }[kind]
    data = Dataset.from_numpy(None, given, y)
    assert data.feature_count == 2
    assert np.array_equal(data.features.toarray(), expected, equal_nan=True)
    assert np.array_equal(pickle.loads(pickle.dumps(data)).features.toarray(), expected, equal_nan=True)
    data = data.make_splits(1)
    model = SheafClassifier("nsd", stalk_dim=2, epochs=100).fit(data)
    assert model.n_features_in_ == 2
    assert model.feature_treatment_ == (
        "2 columns: 1 centred and scaled, 1 with heavy tails by rank, 2 with missing values and an indicator of them"
    )
    assert model.score(data) > 0.9
    assert model.predict(X).shape == y.shape  # no value is missing here
    assert model.predict(expected[:3]).shape == (3,)


def test_missing_values_of_a_column_that_had_none():
    X, y = table("age and income")
    model = SheafClassifier("nsd", stalk_dim=2, epochs=5).fit(X, y)
    gap, mean = X[:1].copy(), X[:1].copy()
    gap[0, 0], mean[0, 0] = np.nan, X[:, 0].mean()
    assert np.allclose(model.predict_proba(gap), model.predict_proba(mean), atol=1e-6)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match=r"features\[1, 0\]: inf is not allowed"):
        Dataset.from_numpy(None, [[1.0], [np.inf]], [0, 1])
    X, y = table("age and income")
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        SheafClassifier().fit(X, y)


def test_columns_are_known_by_name(tmp_path):
    X, y = table("age and income")
    data = Dataset.from_numpy(None, pd.DataFrame(X, columns=["age", "income"]), y).make_splits(1)
    assert data.feature_names == ["age", "income"]
    assert pickle.loads(pickle.dumps(data)).feature_names == ["age", "income"]
    model = SheafClassifier("nsd", stalk_dim=2, epochs=2).fit(data)
    model.save(tmp_path / "model.safetensors")
    swapped = Dataset.from_numpy(None, X[:, ::-1], feature_names=["income", "age"])
    for own in (model, SheafClassifier.load(tmp_path / "model.safetensors")):
        assert list(own.feature_names_in_) == ["age", "income"]
        with pytest.raises(ValueError, match="the model was trained with 'age' there; the same columns in another order"):
            own.predict(swapped)
        with pytest.raises(ValueError, match="feature names"):
            own.predict(pd.DataFrame(X, columns=["income", "age"]))
        assert own.predict(pd.DataFrame(X, columns=["age", "income"])).shape == y.shape
    with pytest.raises(ValueError, match=r"feature_names\[1\]: 'age' is not allowed; column 0 has the same name"):
        Dataset.from_numpy(None, X, feature_names=["age", "age"])
    with pytest.raises(ValueError, match=r"feature_names\[1\]: '' is not allowed; a name must not be empty"):
        Dataset.from_numpy(None, X, feature_names=["age", ""])
    with pytest.raises(ValueError, match=r"features\[1\]: 'age' is not allowed; column 0 has the same name"):
        Dataset.from_pandas(pd.DataFrame({"age": [1.0, 2.0]}), None, label=None, features=["age", "age"])
    with pytest.raises(ValueError, match="feature_names: 1 names are not allowed"):
        Dataset.from_numpy(None, X, feature_names=["age"])


def test_a_network_without_edges():
    data = sheafnn.synthetic(nodes=100)
    alone = Dataset.from_numpy(None, data.features, data.labels, splits=data.splits)
    options = dict(model="nsd", stalk_dim=2, epochs=5, preset="small", random_state=0)
    without = SheafClassifier(**options, network={"use_edges": False}).fit(data)
    assert (without.predict_proba(data) == SheafClassifier(**options).fit(alone).predict_proba(alone)).all()
    with pytest.raises(ValueError, match="a network without edges has no sheaf"):
        without.learned_sheaf(data)


def test_columns_of_texts_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "town": ["1", "x", "2", "3"]})
    with pytest.raises(ValueError, match="X: column 'town', row 1: 'x' is not allowed; expected numbers"):
        SheafClassifier().fit(frame, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="features: column 'town', row 1: 'x' is not allowed; expected numbers"):
        Dataset.from_numpy(None, frame)


def test_broken_matrices_are_refused():
    for make in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix):
        matrix = make(np.eye(4))
        matrix.indptr = np.array([0, 1, 2, 3, 10**6], np.int32)
        with pytest.raises(ValueError, match="features: .*index pointer"):
            Dataset.from_numpy(None, matrix)
        with pytest.raises(ValueError, match="X: .*index pointer"):
            SheafClassifier().fit(matrix, [0, 1, 0, 1])
