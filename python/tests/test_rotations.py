"""Rotations against scipy and closed forms."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from scipy.spatial.transform import Rotation

from sheafnn import rotations


def of_family(family, dimension):
    location = rotations.haar(1, dimension, seed=4)[0]
    if family is rotations.Haar:
        return rotations.Haar(dimension)
    if family is rotations.MatrixFisher:
        return rotations.MatrixFisher(location @ np.diag(np.arange(1.0, dimension + 1)))
    if family is rotations.Bingham:
        return rotations.Bingham([[2.0, 1, 0, 0], [1, 1, 0, 0.5], [0, 0, -1, 0], [0, 0.5, 0, 0]])
    if family is rotations.MatrixBingham:
        spread = np.diag(np.arange(1.0, dimension + 1))
        return rotations.MatrixBingham(location @ spread @ location.T, spread[::-1, ::-1])
    if family is rotations.Mixture:
        return rotations.Mixture([rotations.Haar(dimension), rotations.Cayley(location, 0.6)], [1, 2])
    return family(location, {rotations.Cayley: 0.6, rotations.IsotropicGaussian: 0.8}.get(family, 3.0))


CASES = [
    (family, n)
    for family in (rotations.Haar, rotations.Cayley, rotations.LeonCayley, rotations.MatrixFisher)
    for n in (range(2, 4) if family is rotations.MatrixFisher else range(2, 6))
] + [(rotations.IsotropicGaussian, 3), (rotations.Bingham, 3)]
#: without a fit of their own
UNFITTED = [(rotations.Haar, n) for n in range(2, 6)] + [(rotations.MatrixBingham, 2), (rotations.MatrixBingham, 3)]
CASES += UNFITTED[4:]


@pytest.mark.parametrize(("family", "n"), CASES + [(rotations.Mixture, 2), (rotations.Mixture, 4)])
def test_scores_are_derivatives_of_log_densities(family, n):
    distribution = of_family(family, n)
    samples = distribution.sample(3, seed=2)
    lower = [(i, j) for j in range(n) for i in range(j + 1, n)]
    score = distribution.score(samples)
    assert score.shape == (3, len(lower))
    for k, (i, j) in enumerate(lower):
        skew = np.zeros((n, n))
        skew[i, j], skew[j, i] = 1e-6, -1e-6
        up, down = (distribution.logpdf(rotations.rotation_exp(sign * skew) @ samples) for sign in (1, -1))
        np.testing.assert_allclose(score[:, k], (up - down) / 2e-6, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("family", "first", "second"),
    [
        (rotations.Cayley, 0.9, 0.85),
        (rotations.LeonCayley, 30.0, 20.0),
        (rotations.IsotropicGaussian, 0.2, 0.3),
    ],
)
def test_mixtures_find_their_components(family, first, second):
    here, there = rotations.haar(2, 3, seed=8)
    truth = rotations.Mixture([family(here, first), family(there, second)], [3, 1])
    samples = truth.sample(400, seed=5)
    fit = rotations.Mixture.fit(samples, family, 2, seed=1)
    assert fit.converged and fit.log_likelihood >= truth.logpdf(samples).mean()
    assert fit.log_likelihood == pytest.approx(fit.distribution.logpdf(samples).mean(), abs=1e-10)
    assert max(fit.distribution.weights) == pytest.approx(0.75, abs=0.11)
    np.testing.assert_allclose(fit.responsibilities, fit.distribution.responsibilities(samples), atol=1e-9)
    best = rotations.Mixture.select(samples, family, 3, starts=2)
    assert len(best.distribution.components) == 2
    assert best.bic == best.all_bic.min() and best.all_bic.shape == (3,)
    again = pickle.loads(pickle.dumps(fit.distribution))
    assert (again.logpdf(samples) == fit.distribution.logpdf(samples)).all()


def test_mixtures_of_several_families():
    components = [of_family(family, 3) for family in (rotations.MatrixBingham, rotations.Bingham, rotations.Haar)]
    mixture = rotations.Mixture(components, [0.5, 0.3, 0.2])
    samples = mixture.sample((20, 1000), seed=1)
    densities = sum(w * one.pdf(samples) for w, one in zip(mixture.weights, components))
    np.testing.assert_allclose(mixture.pdf(samples), densities, rtol=1e-13)
    np.testing.assert_allclose(mixture.responsibilities(samples)[..., 2] * densities, 0.2, rtol=1e-12)
    assert np.abs(samples.mean(axis=(0, 1)) - mixture.mean()).max() < 5 / np.sqrt(20000)
    assert not hasattr(mixture, "entropy") and not hasattr(mixture, "location")
    nested = rotations.Mixture([mixture, components[2]])
    np.testing.assert_allclose(nested.pdf(samples[0]), (mixture.pdf(samples[0]) + 1) / 2, rtol=1e-13)


def test_isotropic_gaussian_and_bingham_fits():
    truth = of_family(rotations.IsotropicGaussian, 3)
    samples = truth.sample(2000, seed=3)
    fit = rotations.IsotropicGaussian.fit(samples)
    assert abs(fit.distribution.scale - truth.scale) < 5 * fit.scale_error
    moments = rotations.IsotropicGaussian.fit(samples, moments=True)
    assert moments.iterations == 0 and moments.log_likelihood <= fit.log_likelihood
    bingham = of_family(rotations.Bingham, 3)
    own = rotations.Bingham.fit(bingham.sample(2000, seed=3))
    assert np.abs(own.distribution.mean() - bingham.mean()).max() < 0.1
    for n in (2, 3):
        frames = of_family(rotations.MatrixBingham, n)
        given = frames.sample(300, seed=3)
        fitted = rotations.MatrixBingham.fit(given)
        ratio = 2 * 300 * (fitted.log_likelihood - frames.logpdf(given).mean())
        assert 0 <= ratio < 28  # chi squared of at most 9 degrees of freedom
        assert fitted.log_likelihood == pytest.approx(fitted.distribution.logpdf(given).mean(), abs=1e-10)
        one = rotations.Mixture.fit(given, rotations.MatrixBingham, 1)
        assert one.log_likelihood == pytest.approx(fitted.log_likelihood, abs=1e-9)
    with pytest.raises(ValueError, match="scale: 0 is not allowed"):
        rotations.IsotropicGaussian(np.eye(3), 0)
    with pytest.raises(ValueError, match="must be symmetric"):
        rotations.Bingham(np.triu(np.ones((4, 4))))


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


@pytest.mark.parametrize(("family", "n"), [case for case in CASES if case not in UNFITTED])
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
        (lambda: rotations.IsotropicGaussian(np.eye(4), 0.5), "dimension: 4 is not allowed; must be 3"),
        (lambda: rotations.Bingham(np.eye(3)), "rows of the parameter: 3 is not allowed; must be 4"),
        (lambda: rotations.Haar(3).logpdf(np.eye(2)), "rows and columns"),
        (lambda: rotations.MatrixBingham(np.eye(4), np.eye(4)), "dimension"),
        (lambda: rotations.MatrixBingham(np.eye(3), np.eye(2)), "inner: 2 is not allowed"),
        (lambda: rotations.MatrixBingham(np.eye(3), np.triu(np.ones((3, 3)))), "must be symmetric"),
        (lambda: rotations.Mixture([]), "components: an empty list"),
        (lambda: rotations.Mixture([rotations.Haar(3), rotations.Haar(2)]), "components[1]: dimension 2"),
        (lambda: rotations.Mixture([rotations.Haar(3), 1]), "components[1]: 1 is not allowed"),
        (lambda: rotations.Mixture([rotations.Haar(3)], [-1]), "weights[0]"),
        (lambda: rotations.Mixture.fit(rotations.haar(9), rotations.Haar), "family: 'Haar'"),
        (lambda: rotations.Mixture.fit(rotations.haar(9), rotations.Cayley, 0), "components: 0"),
        (lambda: rotations.Mixture.fit(rotations.haar(9, 4), rotations.Bingham), "dimension"),
        (lambda: rotations.Cayley(np.eye(3), 0.5).logpdf(np.ones((3, 3))), ""),
        (lambda: rotations.Cayley.fit(np.eye(3)[None]), "samples"),
        (lambda: rotations.cayley_transform(np.eye(3)), "skew[0]: A + A^T"),
        (lambda: rotations.nearest_rotation(np.full((3, 3), np.nan)), "nearest_rotation"),
        (lambda: rotations.Haar(2.7), "dimension: 2.7"),
        (lambda: rotations.Haar(3).sample(2.5), "size: 2.5"),
        (lambda: rotations.Haar(3).sample(-1), "size: -1"),
        (lambda: rotations.Haar(3).sample(1, seed=-1), "seed: -1"),
        (lambda: rotations.Cayley(np.eye(3), "a"), "concentration: 'a'"),
        (lambda: rotations.Cayley(np.eye(3), True), "concentration: True"),
        (lambda: rotations.Cayley(np.eye(3), -0.1), "concentration: -0.1 is not allowed; must be in [0, 1)"),
        (lambda: rotations.Cayley(np.eye(3), 1.0), "concentration: 1 is not allowed; must be in [0, 1)"),
        (lambda: rotations.Cayley(np.eye(3), np.nan), "concentration: nan is not allowed; must be in [0, 1)"),
        (lambda: rotations.LeonCayley(np.eye(3), -0.1), "concentration: -0.1 is not allowed; must be in [0, 1e"),
        (lambda: rotations.LeonCayley(np.eye(3), np.inf), "concentration: inf is not allowed; must be in [0, 1e"),
        (lambda: rotations.MatrixFisher([[0, np.inf], [0, 1]]), "parameter(0, 1): inf"),
        (lambda: rotations.rotation_exp([[0, np.nan], [np.nan, 0]]), "skew[0]: A(1, 0): nan"),
        (lambda: rotations.rotation_exp(np.full((2, 3, 3), np.inf)), "skew[0]: A(0, 0): inf"),
        (lambda: rotations.cayley_transform([[0, -np.inf], [np.inf, 0]]), "skew[0]: A(1, 0): inf"),
        (lambda: rotations.rotation_exp(Rotation.identity()), "skew: a Rotation is not allowed"),
        (lambda: rotations.rotation_log(np.eye(3), tolerance=0.02), "tolerance: 0.02 is not allowed"),
        (lambda: rotations.rotation_log(1.001 * np.eye(3)), "rotation_log: r"),
        (lambda: rotations.rotation_log(1.001 * np.eye(3), tolerance=1e-3), "a rotation is orthogonal within 0.001"),
        (lambda: rotations.Cayley(-np.eye(3), 0.5, tolerance=1e-3), "location[0]: rotation: a matrix with determinant -1"),
        (lambda: rotations.Haar(3).sample(1, seed="a"), "seed: 'a'"),
        (lambda: rotations.Cayley(np.eye(3), 0.5).logpdf(1j * np.eye(3)), "Complex"),
        (lambda: rotations.Haar(3).logpdf(np.stack([np.eye(3), 2 * np.eye(3)])), "rotations[1]"),
        (lambda: rotations.Haar(3).logpdf(2 * np.eye(3, dtype=np.float32)), "rotations[0]: rotation: a matrix R with"),
        (lambda: rotations.Mixture(rotations.Haar(3)), "components: Haar(3) is not allowed; expected a list of distributions"),
        (lambda: rotations.Cayley.fit(rotations.haar(9), moments="no"), "moments: 'no' is not allowed; must be True or False"),
        (lambda: rotations.Cayley(np.eye(3), 0.5).logpdf(np.ma.array(np.eye(3), mask=np.eye(3) > 0)), "p(0, 0): nan is not allowed"),
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


def skew(x, y, z):
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0.0]])


# Entries (0, 0), (1, 0), (2, 1) of exp(X) and of the Cayley transform, X v = size (1, 2, -2) x v, with mpmath.
@pytest.mark.parametrize(
    ("size", "exponential", "cayley"),
    [
        (1, [-0.76888221920039596202, 0.34814054942685417577, -0.83740110691357557364], [-0.6, 0.0, -0.6]),
        (50, [0.73266738353633345015, 0.54341744053535972509, -0.37195845144155481874], [-0.77769876894360250656, 0.43553619839118261411, -0.88440513754944224701]),
        (1000, [-0.75616195545400042602, 0.29291383934162139233, -0.80501765296606085592], [-0.77777758024693552812, 0.44399995066667214815, -0.88866656792593689712]),
        (100000, [-0.77266859440433094822, 0.37179138232566116311, -0.85064641406445468713], [-0.77777777775802469136, 0.44443999999506177778, -0.88888666665679014815]),
        (1e+07, [-0.12482613716717009728, -0.36154699764059626348, -0.24103630261739065474], [-0.77777777777777580247, 0.44444439999999950617, -0.88888886666666567901]),
        (1e+10, [0.1494131242813907583, 0.87869418876546685786, -0.75831717277721189457], [-0.77777777777777777778, 0.4444444444, -0.88888888886666666667]),
        (1e+14, [-0.60560889989501504659, 0.79573100146628263792, -0.99996883819377196143], [-0.77777777777777777778, 0.44444444444444, -0.88888888888888666667]),
    ],
)
def test_large_angles(size, exponential, cayley):
    x = size * skew(1, 2, -2)
    for result, expected in ((rotations.rotation_exp(x), exponential), (rotations.cayley_transform(x), cayley)):
        assert np.abs(result[[0, 1, 2], [0, 0, 1]] - expected).max() < 16 * np.finfo(float).eps


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e3, 1e5, 1e7, 1e12, 1e16, 1e155, 1e300, 1e308])
def test_results_are_rotations_for_every_size(n, size):
    x = np.random.default_rng(n).uniform(-1, 1, size=(20, n, n))
    x = np.triu(size * x, 1)
    x = x - x.swapaxes(-1, -2)
    for result in (rotations.rotation_exp(x), rotations.cayley_transform(x)):
        assert np.abs(result @ result.swapaxes(-1, -2) - np.eye(n)).max() < 64 * n * np.finfo(float).eps
        assert np.abs(np.linalg.det(result) - 1).max() < 64 * n * np.finfo(float).eps
    if size >= 1e16:  # all but the fixed axis of odd n turn by pi
        signs = np.linalg.eigvalsh(rotations.cayley_transform(x))
        assert np.abs(signs - np.r_[-np.ones(n - n % 2), np.ones(n % 2)]).max() < 1e-13


def test_exponential_of_one_plane_is_that_of_the_plane():
    for n in (2, 4, 5):
        for angle in (3000.0, 1e5, 1e8, 1e15, 1e300):
            x = np.zeros((n, n))
            x[0, n - 1], x[n - 1, 0] = -angle, angle
            result = rotations.rotation_exp(x)
            assert abs(result[0, 0] - np.cos(angle)) < 1e-15
            assert abs(result[n - 1, 0] - np.sin(angle)) < 1e-15


def test_scipy_rotations():
    batch = Rotation.random(40, rng=np.random.default_rng(3))
    matrices = batch.as_matrix()
    truth = rotations.Cayley(batch[0], 0.4)
    assert np.abs(truth.location - matrices[0]).max() < 1e-15
    assert truth.logpdf(batch).shape == (40,)
    assert (truth.logpdf(batch) == truth.logpdf(matrices)).all()
    assert truth.logpdf(batch[5]) == truth.logpdf(matrices)[5]
    assert (truth.pdf([batch[1], batch[2]]) == truth.pdf(matrices[1:3])).all()
    logarithms = rotations.rotation_log(batch)
    assert np.abs(logarithms[:, 2, 1] - batch.as_rotvec()[:, 0]).max() < 1e-12
    assert np.abs(rotations.nearest_rotation(batch) - matrices).max() < 1e-12
    for family in (rotations.Cayley, rotations.LeonCayley, rotations.MatrixFisher):
        assert family.fit(batch).log_likelihood == family.fit(matrices).log_likelihood


def test_tolerance():
    truth = rotations.Cayley(np.eye(3), 0.6)
    samples = truth.sample(50, seed=2)
    rough = samples.round(4)
    with pytest.raises(ValueError, match="logpdf: p"):
        truth.logpdf(rough)
    assert np.abs(truth.logpdf(rough, tolerance=1e-3) - truth.logpdf(samples)).max() < 1e-2
    assert (truth.pdf(rough, tolerance=1e-3) == np.exp(truth.logpdf(rough, tolerance=1e-3))).all()
    assert np.abs(rotations.rotation_log(rough, tolerance=1e-3) - rotations.rotation_log(samples)).max() < 1e-2
    located = rotations.Cayley(rough[0], 0.5, tolerance=1e-3)
    assert np.abs(located.location @ located.location.T - np.eye(3)).max() < 1e-14
    assert (pickle.loads(pickle.dumps(located)).location == located.location).all()
    for family in (rotations.Cayley, rotations.LeonCayley, rotations.MatrixFisher):
        fit = family.fit(rough, tolerance=1e-3)
        assert fit.log_likelihood == pytest.approx(family.fit(samples).log_likelihood, abs=1e-2)
    # Single precision kept in doubles, and arrays of half precision.
    assert truth.logpdf(samples.astype(np.float32).astype(float), tolerance=1e-6).shape == (50,)
    assert truth.logpdf(samples.astype(np.float16)).shape == (50,)


def test_tensors():
    torch = pytest.importorskip("torch")
    d, samples = rotations.Cayley(np.eye(3), 0.5), rotations.haar(20, 3, seed=1)
    tensor = torch.tensor(samples, requires_grad=True)
    assert (d.logpdf(tensor) == d.logpdf(samples)).all()
    assert (d.logpdf(tensor.float()) == d.logpdf(samples.astype(np.float32))).all()
    weights = torch.arange(20.0, requires_grad=True)
    assert rotations.Cayley.fit(tensor, weights).log_likelihood == rotations.Cayley.fit(samples, np.arange(20.0)).log_likelihood


def test_generators_as_seeds():
    distribution = rotations.Cayley(np.eye(3), 0.6)
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(5)
        first, second = distribution.sample(4, seed=generator), distribution.sample(4, seed=generator)
        assert (first != second).any()
        assert (first == distribution.sample(4, seed=make(5))).all()
        assert (rotations.haar(4, seed=make(7)) == rotations.haar(4, seed=make(7))).all()
    assert (distribution.sample(4, seed=2**64 - 1) == distribution.sample(4, seed=np.uint64(2**64 - 1))).all()
