"""The package and the C++ programs train the same networks, bit for bit. SHEAFNN_PROGRAMS names the programs' folder."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import sheafnn

folder = os.environ.get("SHEAFNN_PROGRAMS")
pytestmark = pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")


@pytest.mark.parametrize(
    ("model", "maps", "d"),
    [("bsnn", "special-orthogonal", 3), ("nsd", "special-orthogonal", 3), ("bcsnn", None, 2),
     ("flow", "diagonal", 2)],
)
def test_training_is_the_same(tmp_path, model, maps, d):
    program = pathlib.Path(folder) / "train"
    saved, report, predictions = (tmp_path / name for name in ("m.safetensors", "r.json", "p.npz"))
    subprocess.run(
        [program, "--dataset", "karate", "--model", model, *(["--maps", maps] if maps else []), "--stalk-dim", str(d),
         "--splits", "0", "--epochs", "60", "--seed", "5", "--save", saved, "--report", report, "--predictions", predictions],
        check=True, stdout=subprocess.DEVNULL,
    )
    data = sheafnn.karate_club()
    own = sheafnn.SheafClassifier(model, maps or "special-orthogonal", d, epochs=60, random_state=5).fit(data, split=0)
    theirs = sheafnn.SheafClassifier.load(saved, random_state=5)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    for name in a:
        assert (a[name] == b[name]).all(), name
    assert (own.predict_proba(data) == theirs.predict_proba(data)).all()
    stored = np.load(predictions)
    assert (stored["probabilities"].reshape(34, 2) == own.uncertainty_.probabilities).all()
    run = json.loads(report.read_text())["splits"][0]
    assert run["best_epoch"] == own.result_["best_epoch"]
    assert theirs.sheaf_use_ == own.sheaf_use_ == run["sheaf"]
    assert run["test_accuracy"] == pytest.approx(own.result_["test_accuracy"], abs=1e-12)


@pytest.mark.parametrize("model", ["snn", "bsnn-given"])
def test_given_sheaves_are_the_same(tmp_path, model):
    data = sheafnn.karate_club()
    maps = np.random.default_rng(0).normal(size=(156, 2))
    np.savez(tmp_path / "sheaf.npz", maps=maps)
    subprocess.run(
        [pathlib.Path(folder) / "train", "--dataset", "karate", "--given-sheaf", tmp_path / "sheaf.npz", "--model", model,
         "--maps", "diagonal", "--stalk-dim", "2", "--splits", "0", "--epochs", "30", "--seed", "5",
         "--save", tmp_path / "m.safetensors"],
        check=True, stdout=subprocess.DEVNULL,
    )
    given = data.with_sheaf(sheafnn.CellularSheaf(data, maps, family="diagonal"))
    own = sheafnn.SheafClassifier(model, "diagonal", 2, epochs=30, random_state=5).fit(given, split=0)
    theirs = sheafnn.SheafClassifier.load(tmp_path / "m.safetensors", random_state=5)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    for name in a:
        assert (a[name] == b[name]).all(), name
    assert (own.predict_proba(given) == theirs.predict_proba(given)).all()


def test_predict_reads_what_python_saved(tmp_path):
    data = sheafnn.karate_club()
    own = sheafnn.SheafClassifier(epochs=30).fit(data)
    own.save(tmp_path / "m.safetensors")
    subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", tmp_path / "m.safetensors", "--dataset", "karate", "--samples", "20",
         "--output", tmp_path / "classes.csv"],
        check=True, stdout=subprocess.DEVNULL,
    )
    rows = np.genfromtxt(tmp_path / "classes.csv", delimiter=",", names=True)
    assert np.abs(rows["p_0"] - own.predict_proba(data)[:, 0]).max() < 1e-15


@pytest.mark.parametrize("loss", ["squared", "gaussian", "poisson"])
def test_numbers_are_the_same(tmp_path, loss):
    """Both train on the numbers of one file, and each predicts with the other's network."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    ring = np.arange(40)
    y = np.floor(np.exp(1 + features[:, :2] * 0.5)) if loss == "poisson" else 30 + 7 * features[:, :2]
    y[::9, 0] = np.nan
    masks = [(ring % 4 < 2), ring % 4 == 2, ring % 4 == 3]
    np.savez(tmp_path / "d.npz", node_features=features, edges=np.stack([ring, (ring + 1) % 40], 1), node_labels=ring % 2,
             price=y, **dict(zip(("train_masks", "val_masks", "test_masks"), masks)))
    saved, back, table = (tmp_path / name for name in ("m.safetensors", "own.safetensors", "p.csv"))
    subprocess.run(
        [pathlib.Path(folder) / "train", "--dataset", tmp_path / "d.npz", "--target", "price", "--loss", loss,
         "--maps", "special-orthogonal", "--stalk-dim", "3", "--epochs", "30", "--seed", "5", "--save", saved],
        check=True, stdout=subprocess.DEVNULL,
    )
    data = sheafnn.load_dataset(tmp_path / "d.npz")
    own = sheafnn.SheafRegressor("bsnn", "special-orthogonal", 3, loss=loss, epochs=30, random_state=5).fit(data, y, split=0)
    theirs = sheafnn.SheafRegressor.load(saved, random_state=5)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    assert all((a[name] == b[name]).all() for name in a)
    assert (own.predict(data) == theirs.predict(data)).all()
    own.save(back)
    subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", back, "--dataset", tmp_path / "d.npz", "--samples", "20", "--output", table],
        check=True, stdout=subprocess.DEVNULL,
    )
    rows = np.genfromtxt(table, delimiter=",", skip_header=1)
    width = 1 if loss == "squared" else 2  # standard deviations beside the means
    expected = sheafnn.SheafRegressor.load(back, predict_samples=20, random_state=0).predict(data)
    np.testing.assert_allclose(rows[:, 1::width], expected, rtol=1e-12)


def test_predict_compares_the_columns_of_an_array(tmp_path):
    """Targets of one array of n x k numbers: predict reads its columns and says how far its predictions are from them."""
    rng = np.random.default_rng(1)
    features, ring = rng.normal(size=(40, 3)), np.arange(40)
    y = 30 + 7 * features[:, :2]
    y[::9, 0] = np.nan
    masks = [(ring % 4 < 2), ring % 4 == 2, ring % 4 == 3]
    np.savez(tmp_path / "d.npz", node_features=features, edges=np.stack([ring, (ring + 1) % 40], 1), price=y.astype(np.float32),
             **dict(zip(("train_masks", "val_masks", "test_masks"), masks)))
    saved, table = tmp_path / "m.safetensors", tmp_path / "p.csv"
    subprocess.run(
        [pathlib.Path(folder) / "train", "--dataset", tmp_path / "d.npz", "--target", "price", "--model", "nsd", "--maps", "diagonal",
         "--stalk-dim", "2", "--epochs", "30", "--save", saved],
        check=True, stdout=subprocess.DEVNULL,
    )
    said = subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", saved, "--dataset", tmp_path / "d.npz", "--output", table],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    rows = np.genfromtxt(table, delimiter=",", names=True)
    data = sheafnn.load_dataset(tmp_path / "d.npz", targets=["price"])
    assert data.target_names == ["price_0", "price_1"]
    # The names are in files that Python writes as well.
    sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=2).fit(data).save(saved)
    again = subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", saved, "--dataset", tmp_path / "d.npz"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert "targets: price_0, price_1" in again
    for c, name in enumerate(data.target_names):
        (line,) = (line for line in said.splitlines() if line.startswith(f"{name}: mean absolute error "))
        assert float(line.split()[4].rstrip(",")) == pytest.approx(np.nanmean(np.abs(rows[name] - data.targets[:, c])), rel=2e-3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.float32, bool])
def test_predict_reads_ordered_classes_of_every_type(tmp_path, dtype):
    data = sheafnn.karate_club()
    labels = np.array([0, 1])[data.codes].astype(dtype)
    ordered = sheafnn.Dataset.from_numpy(data.edges, data.features, labels, splits=data.splits[:1])
    own = sheafnn.SheafClassifier("nsd", "diagonal", 2, loss="ordinal", epochs=5).fit(ordered)
    assert own.classes_.dtype == dtype
    own.save(tmp_path / "m.safetensors")
    subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", tmp_path / "m.safetensors", "--dataset", "karate", "--output", tmp_path / "p.csv"],
        check=True, stdout=subprocess.DEVNULL,
    )
    rows = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True)
    np.testing.assert_allclose(rows["p_0"], own.predict_proba(data)[:, 0], rtol=1e-12)
