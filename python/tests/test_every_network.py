"""Networks of every kind and layer: they train, their files give the same predictions, and wrong options are named."""

import numpy as np
import pytest

import sheafnn

LAYERS = ("convolution", "wave", "attention", "copresheaf", "directed")


@pytest.mark.parametrize("model", ["nsd", "bsnn"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(karate, tmp_path, model, layer):
    trained = sheafnn.SheafClassifier(
        model=model, maps="diagonal", stalk_dim=2, layers=2, epochs=3, network={"layer": layer}
    ).fit(karate, split=0)
    expected = trained.predict_proba(karate)
    assert np.isfinite(expected).all()
    trained.save(tmp_path / "model.safetensors")
    loaded = sheafnn.SheafClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(karate), expected)


def test_layers_have_names(karate):
    with pytest.raises(ValueError, match="layer"):
        sheafnn.SheafClassifier(model="nsd", maps="diagonal", stalk_dim=2, network={"layer": "waves"}).fit(karate, split=0)


@pytest.mark.parametrize("model", ["bunn", "bbunn", "conn-nsd", "bconn-nsd"])
def test_other_kinds(karate, tmp_path, model):
    trained = sheafnn.SheafClassifier(model=model, stalk_dim=2, epochs=3).fit(karate, split=0)
    expected = trained.predict_proba(karate)
    assert np.isfinite(expected).all()
    trained.save(tmp_path / "model.safetensors")
    loaded = sheafnn.SheafClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(karate), expected)


def test_bundles_need_two_dimensions(karate):
    with pytest.raises(ValueError, match="stalk_dim"):
        sheafnn.SheafClassifier(model="bunn", stalk_dim=1).fit(karate, split=0)
