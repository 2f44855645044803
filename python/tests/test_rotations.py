"""Rotations against scipy and closed forms."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from sheafnn import rotations


def of_family(family, dimension):
    location = rotations.haar(1, dimension, seed=4)[0]
    if family is rotations.Haar:
        return rotations.Haar(dimension)
    if family is rotations.MatrixFisher:
        return rotations.MatrixFisher(location @ np.diag(np.arange(1.0, dimension + 1)))
    return family(location, 0.6 if family is rotations.Cayley else 3.0)


CASES = [
    (family, n)
    for family in (rotations.Haar, rotations.Cayley, rotations.LeonCayley, rotations.MatrixFisher)
    for n in (range(2, 4) if family is rotations.MatrixFisher else range(2, 6))
]


@pytest.mark.parametrize(("family", "n"), CASES)
def test_samples_are_rotations_and_densities_have_mass_one(family, n):
    distribution = of_family(family, n)
    samples = distribution.sample((50, 400), seed=1)
    assert samples.shape == (50, 400, n, n)
    assert np.abs(samples @ samples.swapaxes(-1, -2) - np.eye(n)).max() < 1e-12
    assert np.abs(np.linalg.det(samples) - 1).max() < 1e-12
    assert (distribution.sample(7, seed=1) == samples.reshape(-1, n, n)[:7]).all()
    assert np.abs(samples.mean(axis=(0, 1)) - distribution.mean()).max() < 5 / np.sqrt(20000)
    uniform = rotations.haar(200000, n, seed=9)
    density = distribution.pdf(uniform)
    assert density.shape == (200000,)
    assert abs(density.mean() - 1) < 6 * density.std() / np.sqrt(density.size) + 1e-12
    logs = distribution.logpdf(samples)
    assert logs.shape == (50, 400)
    assert abs(logs.mean() - distribution.kl_to_uniform()) < 6 * logs.std() / np.sqrt(logs.size) + 1e-12
    assert distribution.entropy() == pytest.approx(-distribution.kl_to_uniform(), abs=1e-12)


def test_cayley_density_of_the_plane():
    """On SO(2) it is the wrapped Cauchy distribution."""
    angles = np.linspace(-3, 3, 13)
    matrices = np.stack([np.stack([np.cos(angles), -np.sin(angles)], -1),
                         np.stack([np.sin(angles), np.cos(angles)], -1)], -2)
    density = rotations.Cayley(np.eye(2), 0.4).pdf(matrices)
    assert np.abs(density / (2 * np.pi) - scipy.stats.wrapcauchy.pdf(angles % (2 * np.pi), 0.4)).max() < 1e-12


@pytest.mark.parametrize(("family", "n"), [(f, n) for f, n in CASES if f is not rotations.Haar])
def test_fits_find_the_truth(family, n):
    truth = of_family(family, n)
    samples = truth.sample(4000, seed=3)
    fit = family.fit(samples)
    assert fit.log_likelihood >= truth.logpdf(samples).mean()
    assert fit.effective_samples == pytest.approx(4000)
    assert np.abs(fit.distribution.mean() - truth.mean()).max() < 0.1
    if fit.concentration_error is not None:
        assert abs(fit.distribution.concentration - truth.concentration) < 5 * fit.concentration_error
    # Samples of weight 0 do not count.
    weights = np.r_[np.ones(2000), np.zeros(2000)]
    half = family.fit(samples, weights)
    assert half.log_likelihood == pytest.approx(family.fit(samples[:2000]).log_likelihood, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_functions_against_scipy(n):
    random = np.random.default_rng(n)
    skew = random.normal(size=(6, 2, n, n))
    skew = 0.4 * (skew - skew.swapaxes(-1, -2))
    expected = np.array([scipy.linalg.expm(a) for a in skew.reshape(-1, n, n)]).reshape(skew.shape)
    assert np.abs(rotations.rotation_exp(skew) - expected).max() < 1e-13
    assert np.abs(rotations.rotation_log(expected) - skew).max() < 1e-12
    identity = np.eye(n)
    cayley = (identity + skew) @ np.linalg.inv(identity - skew)
    assert np.abs(rotations.cayley_transform(skew) - cayley).max() < 1e-13
    assert np.abs(rotations.nearest_rotation(2 * expected) - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rotations.Cayley(np.eye(3), 1.0), "concentration"),
        (lambda: rotations.Cayley(2 * np.eye(3), 0.5), "location"),
        (lambda: rotations.Cayley(np.eye(7), 0.5), "dimension"),
        (lambda: rotations.Cayley(np.ones((2, 3)), 0.5), "shape (2, 3)"),
        (lambda: rotations.Cayley(np.eye(3)[None], 0.5), "expected one matrix"),
        (lambda: rotations.MatrixFisher(np.eye(4)), "dimension"),
        (lambda: rotations.Haar(3).logpdf(np.eye(2)), "rows and columns"),
        (lambda: rotations.Cayley(np.eye(3), 0.5).logpdf(np.ones((3, 3))), ""),
        (lambda: rotations.Cayley.fit(np.eye(3)[None]), "samples"),
        (lambda: rotations.cayley_transform(np.eye(3)), "skew[0]: A + A^T"),
        (lambda: rotations.nearest_rotation(np.full((3, 3), np.nan)), "nearest_rotation"),
        (lambda: rotations.Haar(2.7), "dimension: 2.7"),
        (lambda: rotations.Haar(3).sample(2.5), "size: 2.5"),
        (lambda: rotations.Haar(3).sample(-1), "size: -1"),
        (lambda: rotations.Haar(3).sample(1, seed=-1), "seed: -1"),
        (lambda: rotations.Cayley(np.eye(3), "a"), "concentration: 'a'"),
        (lambda: rotations.Cayley(np.eye(3), 0.5).logpdf(1j * np.eye(3)), "Complex"),
        (lambda: rotations.Haar(3).logpdf(np.stack([np.eye(3), 2 * np.eye(3)])), "rotations[1]"),
        (lambda: rotations.Haar(3).logpdf(2 * np.eye(3, dtype=np.float32)), "away from a rotation"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert message in str(error.value)


def test_single_precision_and_odd_shapes():
    truth = rotations.Cayley(np.eye(3), 0.6)
    samples = truth.sample([2, 3], seed=2)
    single = samples.astype(np.float32)
    assert np.abs(truth.logpdf(single) - truth.logpdf(samples)).max() < 1e-5
    assert np.abs(rotations.rotation_log(single) - rotations.rotation_log(samples)).max() < 1e-5
    assert truth.logpdf(np.empty((0, 3, 3))).shape == (0,)
    assert truth.sample(0).shape == (0, 3, 3)
    turned = np.asfortranarray(samples.reshape(6, 3, 3).T).T[::-2]
    assert (truth.logpdf(turned) == truth.logpdf(np.ascontiguousarray(turned))).all()


def test_distributions_pickle():
    for distribution in (rotations.Haar(4), rotations.Cayley(np.eye(2), 0.3), rotations.MatrixFisher(np.eye(3))):
        same = pickle.loads(pickle.dumps(distribution))
        assert (same.sample(3, seed=5) == distribution.sample(3, seed=5)).all()
    parameter = np.eye(3)
    fisher = rotations.MatrixFisher(parameter)
    parameter *= 9
    assert (pickle.loads(pickle.dumps(fisher)).sample(3) == fisher.sample(3)).all()
    fit = pickle.loads(pickle.dumps(rotations.Cayley.fit(rotations.Cayley(np.eye(3), 0.5).sample(100))))
    assert 0 < fit.distribution.concentration < 1
