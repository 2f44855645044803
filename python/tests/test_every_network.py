"""Networks of every kind and layer: they train, their files give the same predictions, and wrong options are named."""

import numpy as np
import pytest

import sheafnn

LAYERS = ("convolution", "wave", "attention", "copresheaf", "directed")
NETWORKS = {
    f"{model}-{layer}": {"model": model, "maps": "diagonal", "layers": 2, "network": {"layer": layer}}
    for model in ("nsd", "bsnn")
    for layer in LAYERS
} | {model: {"model": model} for model in ("bunn", "bbunn", "conn-nsd", "bconn-nsd", "csnn", "bcsnn")}
NETWORKS |= {model: {"model": model, "maps": "diagonal"} for model in ("flow", "bflow", "snn", "bsnn-given")}


@pytest.mark.parametrize("network", NETWORKS)
def test_files_predict_the_same(karate, tmp_path, network):
    maps = np.linspace(-2, 2, 4 * karate.edge_count).reshape(-1, 2)
    data = karate.with_sheaf(sheafnn.CellularSheaf(karate, maps, family="diagonal"))  # which most networks ignore
    trained = sheafnn.SheafClassifier(stalk_dim=2, epochs=3, **NETWORKS[network]).fit(data, split=0)
    expected = trained.predict_proba(data)
    assert np.isfinite(expected).all()
    trained.save(tmp_path / "model.safetensors")
    loaded = sheafnn.SheafClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(data), expected)


def test_layers_have_names(karate):
    with pytest.raises(ValueError, match="layer"):
        sheafnn.SheafClassifier(model="nsd", maps="diagonal", stalk_dim=2, network={"layer": "waves"}).fit(karate, split=0)


def test_bundles_need_two_dimensions(karate):
    with pytest.raises(ValueError, match="stalk_dim"):
        sheafnn.SheafClassifier(model="bunn", stalk_dim=1).fit(karate, split=0)
