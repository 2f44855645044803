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


def test_predict_refuses_other_targets(tmp_path):
    data = sheafnn.karate_club()
    sheafnn.SheafRegressor("nsd", "special-orthogonal", 3, epochs=3).fit(data, np.arange(34.0)).save(tmp_path / "m.safetensors")
    done = subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", tmp_path / "m.safetensors", "--dataset", "karate"], text=True, capture_output=True
    )
    assert done.returncode != 0 and "the network was not trained on one class per node" in done.stderr
