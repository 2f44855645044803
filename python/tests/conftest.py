"""What several tests use."""

import numpy as np
import pytest

import sheafnn


@pytest.fixture(scope="session")
def karate():
    return sheafnn.karate_club()


@pytest.fixture(scope="session")
def graph():
    """300 nodes of three classes, mostly joined to other classes."""
    return sheafnn.synthetic(nodes=300, classes=3, features=30, words=6, degree=8, homophily=0.2, seed=3)


@pytest.fixture(scope="session")
def trained(karate):
    return sheafnn.SheafClassifier(stalk_dim=2, epochs=60).fit(karate)


@pytest.fixture
def random():
    return np.random.default_rng(7)
