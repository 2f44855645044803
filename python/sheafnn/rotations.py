"""Distributions of rotations of R² to R⁵, and functions of rotations, on arrays of matrices.

Densities are with respect to the uniform (Haar) distribution, which has mass 1. Arrays hold matrices in their last two axes.

Functions that take rotations also take SciPy's ``Rotation`` objects, for n = 3. ``tolerance`` is the largest absolute entry of
RᵀR − I that a rotation R may have, between 0 and 0.01. R is replaced by the nearest rotation. None: 1.5e-8, or 1e-5 for arrays in
single precision and 5e-3 in half precision. A ``seed`` is a whole number below 2**64, or a ``numpy.random.Generator`` or
``RandomState`` that gives one.

>>> import numpy, sheafnn
>>> truth = sheafnn.rotations.Cayley(numpy.eye(3), 0.7)
>>> samples = truth.sample(1000, seed=1)
>>> fit = sheafnn.rotations.Cayley.fit(samples)
>>> bool(abs(fit.distribution.concentration - 0.7) < 4 * fit.concentration_error)
True
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any, Generic, Sequence, TypeVar

import numpy as np

from . import _checks, _core
from ._masks import plain

__all__ = [
    "Bingham",
    "Cayley",
    "Fit",
    "Haar",
    "IsotropicGaussian",
    "LeonCayley",
    "MatrixBingham",
    "MatrixFisher",
    "Mixture",
    "MixtureFit",
    "cayley_transform",
    "haar",
    "nearest_rotation",
    "rotation_exp",
    "rotation_log",
]

D = TypeVar("D", bound="_Distribution")


#: largest \|RᵀR − I\| of rotations that an array of fewer digits than double can be expected to hold
_TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 5e-3}


def _is_scipy_rotation(value: Any) -> bool:
    module = sys.modules.get("scipy.spatial.transform")  # without it there are none
    return module is not None and isinstance(value, module.Rotation)


def _plain(value: Any) -> Any:
    """SciPy's Rotation objects, one or several, as matrices; tensors as arrays; anything else as it is."""
    if _is_scipy_rotation(value):
        return value.as_matrix()
    if isinstance(value, (list, tuple)) and value and all(map(_is_scipy_rotation, value)):
        return np.stack([one.as_matrix() for one in value])
    return plain(value)


def _weights(value: Any) -> np.ndarray:
    """Weights of samples or components; empty: all the same."""
    return _checks.real("weights", [] if value is None else np.ravel(plain(value)))


def _matrices(name: str, value: Any) -> np.ndarray:
    if _is_scipy_rotation(value):
        raise ValueError(f"{name}: a Rotation is not allowed; must be an array of matrices, e.g. of its rotation_log()")
    array = _checks.real(name, value)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"{name}: shape {array.shape} is not allowed; the last two axes must have the same length")
    return array


def _rotations(name: str, value: Any, tolerance: float | None = None) -> np.ndarray:
    """Rotations; those within a tolerance are replaced by the nearest ones in double."""
    value = _plain(value)
    array = _matrices(name, value)
    if tolerance is None:
        tolerance = _TOLERANCES.get(np.asarray(value).dtype)
    else:
        tolerance = _checks.number("tolerance", tolerance, 0, 0.01)
    if tolerance is None or array.size == 0:
        return array  # C++ checks it, with the tolerance of doubles
    return _core.orthonormalised(name, array, tolerance).reshape(array.shape)


def rounded_rotations(name: str, value: Any) -> Any:
    """Of SciPy's Rotation objects and of rotations in less than double precision the nearest ones in double; all else as it is."""
    own = _plain(value)
    return _rotations(name, own) if own is not value or getattr(own, "dtype", None) in _TOLERANCES else value


def checked_rotations(name: str, value: Any, tolerance: float | None) -> np.ndarray:
    """Rotations, of doubles as well replaced by the nearest ones: whatever is wrong is wrong with ``name``."""
    array = _rotations(name, value, tolerance)
    return _core.orthonormalised(name, array, 1.5e-8).reshape(array.shape) if array.size else array


@dataclasses.dataclass(frozen=True)
class Fit(Generic[D]):
    """A distribution fitted to samples, with large-sample standard errors where they exist."""

    distribution: D
    log_likelihood: float  #: weighted mean over the samples
    effective_samples: float  #: (sum of weights)² / sum of squared weights
    iterations: int  #: 0 for estimates in closed form
    location_error: float | None = None  #: error of each coordinate of the location's tangent space, in radians
    concentration_error: float | None = None
    scale_error: float | None = None  #: error of an isotropic Gaussian's scale


class _Density:
    _core: _core.RotationDistribution

    @property
    def dimension(self) -> int:
        """The dimension n of the rotations."""
        return self._core.dimension

    def logpdf(self, rotations: Any, *, tolerance: float | None = None) -> np.ndarray:
        """The logarithm of the density.

        :param rotations: ... x n x n
        :param tolerance: see the module
        :return: ...
        :raises ValueError: a matrix has another size or is not a rotation
        """
        array = _rotations("rotations", rotations, tolerance)
        return self._core.log_density(array).reshape(array.shape[:-2])

    def pdf(self, rotations: Any, *, tolerance: float | None = None) -> np.ndarray:
        """The density with respect to the uniform distribution."""
        return np.exp(self.logpdf(rotations, tolerance=tolerance))

    def score(self, rotations: Any, *, tolerance: float | None = None) -> np.ndarray:
        """The gradient of the log density along the rotations: its derivative in φ at 0 when R becomes exp(X_φ) R.

        :param rotations: ... x n x n
        :return: ... x n(n − 1)/2; X_φ has φ below its diagonal, column by column
        """
        array = _rotations("rotations", rotations, tolerance)
        n = self.dimension
        return self._core.score(array).reshape(*array.shape[:-2], n * (n - 1) // 2)

    def sample(self, size: int | Sequence[int] = 1, *, seed: _checks.Seed = 0) -> np.ndarray:
        """Independent samples, size x n x n; the same seed gives the same samples."""
        sizes = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        shape = tuple(_checks.whole("size", one, 0, 2**32 - 1) for one in sizes)
        return self._core.draw(math.prod(shape), _checks.seed(seed)).reshape(*shape, self.dimension, self.dimension)

    def mean(self) -> np.ndarray:
        """The mean of the matrices, n x n, which is not a rotation in general."""
        return self._core.mean()


class _Distribution(_Density):
    @property
    def location(self) -> np.ndarray:
        """The location, n x n."""
        return self._core.location()

    def mean_resultant(self) -> float:
        """The length of the mean: 0 for the uniform distribution, 1 for a point mass."""
        return self._core.mean_resultant()

    def entropy(self) -> float:
        """The entropy in nats with respect to the uniform distribution, which is at most 0."""
        return self._core.entropy()

    def kl_to_uniform(self) -> float:
        """The Kullback-Leibler divergence from the uniform distribution, in nats."""
        return self._core.kl_to_uniform()


class Haar(_Distribution):
    """The uniform distribution on SO(n).

    >>> Haar(3).sample(5).shape
    (5, 3, 3)
    """

    def __init__(self, dimension: int):
        self._core = _core.haar(_checks.whole("dimension", dimension, 2, 5))

    def __reduce__(self) -> tuple[Any, ...]:
        return Haar, (self.dimension,)

    def __repr__(self) -> str:
        return f"Haar({self.dimension})"


class _Located(_Distribution):
    _make: Any
    _fit: Any

    def __init__(self, location: Any, concentration: float, *, tolerance: float | None = None):
        matrix = _rotations("location", location, tolerance)
        if matrix.ndim != 2:
            raise ValueError(f"location: shape {matrix.shape}: expected one matrix")
        self.concentration = _checks.any_number("concentration", concentration)
        self._core = type(self)._make(matrix, self.concentration)

    @classmethod
    def fit(
        cls: type[D], samples: Any, weights: Any = None, *, moments: bool = False, tolerance: float | None = None
    ) -> "Fit[D]":
        """The distribution of largest likelihood.

        :param samples: ... x n x n rotations
        :param weights: one weight for each sample, on any scale; None: equal weights
        :param moments: match the mean of the samples instead
        :param tolerance: see the module
        :raises ValueError: there are too few samples, a sample is not a rotation, or the likelihood has no maximum. It has none if
            all samples are equal or, for Cayley distributions, a large share of them
        """
        array = _rotations("samples", samples, tolerance)
        w = _weights(weights)
        r = cls._fit(array, w, _checks.flag("moments", moments))  # type: ignore[attr-defined]
        return Fit(cls(r.pop("location"), r.pop("concentration")), **r)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.location, self.concentration)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location.tolist()}, {self.concentration})"


class Cayley(_Located):
    """The Cayley distribution C(M, κ) of the paper: location M, concentration κ in [0, 1); 0 is uniform.

    >>> Cayley([[1, 0], [0, 1]], 0.0).kl_to_uniform()
    0.0
    """

    _make = staticmethod(_core.cayley)
    _fit = staticmethod(_core.fit_cayley)


class LeonCayley(_Located):
    """León's Cayley distribution: density proportional to det(I + MᵀR)^κ, κ ≥ 0; 0 is uniform."""

    _make = staticmethod(_core.leon_cayley)
    _fit = staticmethod(_core.fit_leon_cayley)


class IsotropicGaussian(_Distribution):
    """The isotropic Gaussian distribution on SO(3), IGSO(3): where a Brownian motion from the location is at time scale².

    Density Σ (2l + 1) exp(−l(l + 1) scale²/2) sin((l + ½)ω)/sin(ω/2) at an angle ω from the location. A small scale is the standard
    deviation of each coordinate in radians. Leach et al. (2022) write ε = scale/√2, Yim et al. (2023) t = scale².

    >>> import numpy
    >>> round(float(IsotropicGaussian(numpy.eye(3), 0.1).mean_resultant()), 6)
    0.99005
    """

    def __init__(self, location: Any, scale: float, *, tolerance: float | None = None):
        matrix = _rotations("location", location, tolerance)
        if matrix.ndim != 2:
            raise ValueError(f"location: shape {matrix.shape}: expected one matrix")
        self.scale = _checks.any_number("scale", scale)
        self._core = _core.isotropic_gaussian(matrix, self.scale)

    @classmethod
    def fit(
        cls, samples: Any, weights: Any = None, *, moments: bool = False, tolerance: float | None = None
    ) -> "Fit[IsotropicGaussian]":
        """The distribution of largest likelihood, with the arguments of :meth:`Cayley.fit`."""
        w = _weights(weights)
        r = _core.fit_isotropic_gaussian(_rotations("samples", samples, tolerance), w, _checks.flag("moments", moments))
        return Fit(cls(r.pop("location"), r.pop("scale")), **r)

    def __reduce__(self) -> tuple[Any, ...]:
        return IsotropicGaussian, (self.location, self.scale)

    def __repr__(self) -> str:
        return f"IsotropicGaussian({self.location.tolist()}, {self.scale})"


class MatrixFisher(_Distribution):
    """The matrix Fisher (matrix Langevin) distribution on SO(2) or SO(3): density proportional to exp(tr(FᵀR)).

    >>> import numpy
    >>> MatrixFisher(5 * numpy.eye(3)).location.round(12).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, parameter: Any):
        self.parameter = _matrices("parameter", _plain(parameter)).copy()  # the caller may change theirs
        if self.parameter.ndim != 2:
            raise ValueError(f"parameter: shape {self.parameter.shape}: expected one matrix")
        self._core = _core.matrix_fisher(self.parameter)

    @classmethod
    def fit(cls, samples: Any, weights: Any = None, *, tolerance: float | None = None) -> "Fit[MatrixFisher]":
        """The distribution of largest likelihood, with the arguments of :meth:`Cayley.fit`."""
        w = _weights(weights)
        r = _core.fit_matrix_fisher(_rotations("samples", samples, tolerance), w)
        return Fit(cls(r.pop("parameter")), **r)

    def __reduce__(self) -> tuple[Any, ...]:
        return MatrixFisher, (self.parameter,)

    def __repr__(self) -> str:
        return f"MatrixFisher({self.parameter.tolist()})"


class Bingham(_Distribution):
    """The Bingham distribution of unit quaternions q = (w, x, y, z) on SO(3): density proportional to exp(qᵀ A q).

    It is a matrix Fisher distribution in other parameters.

    :param parameter: A, 4 x 4, symmetric

    >>> import numpy
    >>> Bingham(numpy.diag([9.0, 0.0, 0.0, 0.0])).location.round(12).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, parameter: Any):
        self.parameter = _matrices("parameter", parameter).copy()  # the caller may change theirs
        if self.parameter.ndim != 2:
            raise ValueError(f"parameter: shape {self.parameter.shape}: expected one matrix")
        self._core = _core.bingham(self.parameter)

    @classmethod
    def fit(cls, samples: Any, weights: Any = None, *, tolerance: float | None = None) -> "Fit[Bingham]":
        """The distribution of largest likelihood, with the arguments of :meth:`Cayley.fit`."""
        w = _weights(weights)
        r = _core.fit_bingham(_rotations("samples", samples, tolerance), w)
        return Fit(cls(r.pop("parameter")), **r)

    def __reduce__(self) -> tuple[Any, ...]:
        return Bingham, (self.parameter,)

    def __repr__(self) -> str:
        return f"Bingham({self.parameter.tolist()})"


class MatrixBingham(_Distribution):
    """The matrix Bingham distribution on SO(2) or SO(3): density proportional to exp(tr(B Rᵀ A R)).

    With U the eigenvectors of A, R and the matrices U diag(±1) Uᵀ R of determinant 1 have the same density. So the mean is 0, and
    ``location`` is one of 2 or 4 modes.

    :param outer: A, n x n, symmetric
    :param inner: B, n x n, symmetric; of the form exp(tr(Rᵀ A R D)) it is D

    >>> import numpy
    >>> MatrixBingham(numpy.diag([3.0, 1.0, 0.0]), numpy.diag([2.0, 1.0, 0.0])).location.round(12).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, outer: Any, inner: Any):
        self.outer, self.inner = _matrices("outer", outer).copy(), _matrices("inner", inner).copy()
        for name, matrix in (("outer", self.outer), ("inner", self.inner)):
            if matrix.ndim != 2:
                raise ValueError(f"{name}: shape {matrix.shape}: expected one matrix")
        self._core = _core.matrix_bingham(self.outer, self.inner)

    @classmethod
    def fit(cls, samples: Any, weights: Any = None, *, tolerance: float | None = None) -> "Fit[MatrixBingham]":
        """The distribution of largest likelihood, with the arguments of :meth:`Cayley.fit`; of 3 x 3 matrices five are needed.

        A and B have trace 0 and the same norm, since only their product counts.
        """
        w = _checks.real("weights", [] if weights is None else np.ravel(weights))
        r = _core.fit_matrix_bingham(_rotations("samples", samples, tolerance), w)
        return Fit(cls(r.pop("outer"), r.pop("inner")), **r)

    def __reduce__(self) -> tuple[Any, ...]:
        return MatrixBingham, (self.outer, self.inner)

    def __repr__(self) -> str:
        return f"MatrixBingham({self.outer.tolist()}, {self.inner.tolist()})"


@dataclasses.dataclass(frozen=True)
class MixtureFit:
    """A mixture fitted to samples."""

    distribution: "Mixture"  #: fewer components than asked for where some had no samples left
    responsibilities: np.ndarray  #: the probability of each component given a sample, ... x components
    log_likelihood: float  #: weighted mean over the samples
    effective_samples: float  #: (sum of weights)² / sum of squared weights
    iterations: int
    converged: bool
    bic: float  #: of this fit; smaller is better
    all_bic: np.ndarray  #: of :meth:`Mixture.select`, with k components at k − 1


class Mixture(_Density):
    """A mixture of distributions of one dimension, of any families; it has no location, entropy or divergence.

    :param components: distributions of this module
    :param weights: one weight for each component, on any scale; None: equal weights

    >>> import numpy
    >>> mixture = Mixture([Haar(3), Cayley(numpy.eye(3), 0.9)], [1, 3])
    >>> mixture.weights.tolist()
    [0.25, 0.75]
    >>> fit = Mixture.fit(mixture.sample(300), Cayley, components=2)
    >>> fit.responsibilities.shape
    (300, 2)
    """

    def __init__(self, components: Sequence[_Density], weights: Any = None):
        if isinstance(components, _Density):
            raise ValueError(f"components: {components!r} is not allowed; expected a list of distributions")
        self.components = tuple(components)
        for k, one in enumerate(self.components):
            if not isinstance(one, _Density):
                raise ValueError(f"components[{k}]: {one!r} is not allowed; must be a distribution of rotations")
        given = _weights(weights)
        self._core = _core.mixture([one._core for one in self.components], given)
        count = len(self.components)
        self.weights = given / given.sum() if given.size else np.full(count, 1 / count)

    def responsibilities(self, rotations: Any, *, tolerance: float | None = None) -> np.ndarray:
        """The probability of each component given a rotation, ... x components."""
        array = _rotations("rotations", rotations, tolerance)
        logs = np.stack([one.logpdf(array) for one in self.components], -1)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(self.weights)
        largest = logs.max(-1, keepdims=True)
        shares = np.exp(logs - np.where(np.isfinite(largest), largest, 0))
        total = shares.sum(-1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1), self.weights)

    @classmethod
    def fit(
        cls,
        samples: Any,
        family: type[_Distribution],
        components: int = 2,
        weights: Any = None,
        *,
        starts: int = 4,
        max_iterations: int = 500,
        seed: _checks.Seed = 0,
        tolerance: float | None = None,
    ) -> MixtureFit:
        """The mixture that expectation maximisation finds, a local maximum of the likelihood.

        :param samples: ... x n x n rotations
        :param family: ``Cayley``, ``LeonCayley``, ``MatrixFisher``, ``Bingham``, ``MatrixBingham`` or ``IsotropicGaussian``
        :param components: number of components at the start; a component that no sample belongs to is dropped
        :param weights: one weight for each sample, on any scale; None: equal weights
        :param starts: number of fits from different centres; only the likeliest continues after 20 iterations
        :param max_iterations: largest number of iterations
        :param seed: seed of the centres
        :param tolerance: largest entry of RᵀR − I, as in this module's description
        :raises ValueError: the family has no fit, there are too few samples, a sample is not a rotation, or no component has a fit
        """
        return cls._fitted(samples, family, components, weights, starts, max_iterations, seed, tolerance, False)

    @classmethod
    def select(
        cls,
        samples: Any,
        family: type[_Distribution],
        components: int = 8,
        weights: Any = None,
        *,
        starts: int = 4,
        max_iterations: int = 500,
        seed: _checks.Seed = 0,
        tolerance: float | None = None,
    ) -> MixtureFit:
        """The fit of the smallest BIC with 1 to ``components`` components; parameters are as in :meth:`fit`."""
        return cls._fitted(samples, family, components, weights, starts, max_iterations, seed, tolerance, True)

    @classmethod
    def _fitted(
        cls,
        samples: Any,
        family: type[_Distribution],
        components: int,
        weights: Any,
        starts: int,
        max_iterations: int,
        seed: _checks.Seed,
        tolerance: float | None,
        select: bool,
    ) -> MixtureFit:
        families = (Cayley, LeonCayley, MatrixFisher, Bingham, MatrixBingham, IsotropicGaussian)
        if family not in families:
            names = ", ".join(one.__name__ for one in families)
            raise ValueError(f"family: {getattr(family, '__name__', family)!r} is not allowed; choose {names}")
        array = _rotations("samples", samples, tolerance)
        limit = 2**31 - 1
        count, tries = _checks.whole("components", components, 1, limit), _checks.whole("starts", starts, 1, limit)
        iterations = _checks.whole("max_iterations", max_iterations, 1, limit)
        w = _weights(weights)
        r = _core.fit_mixture(family.__name__, array, w, count, tries, iterations, _checks.seed(seed), select)
        mixture = cls([family(**one) for one in r.pop("components")], r.pop("weights"))
        shares = r.pop("responsibilities")
        return MixtureFit(mixture, shares.reshape(*array.shape[:-2], shares.shape[-1]), **r)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixture, (self.components, self.weights)

    def __repr__(self) -> str:
        return f"Mixture({list(self.components)!r}, {self.weights.tolist()})"


def haar(size: int | Sequence[int], dimension: int = 3, *, seed: _checks.Seed = 0) -> np.ndarray:
    """Uniform rotations, size x n x n."""
    return Haar(dimension).sample(size, seed=seed)


def _each(function: Any, name: str, value: Any) -> np.ndarray:
    array = _matrices(name, value)
    return function(array).reshape(array.shape)


def cayley_transform(skew: Any) -> np.ndarray:
    """(I + A)(I − A)⁻¹ of skew-symmetric matrices, of any finite size.

    >>> cayley_transform([[0.0, -1.0], [1.0, 0.0]]).round(12).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    return _each(_core.cayley_transform, "skew", skew)


def rotation_exp(skew: Any) -> np.ndarray:
    """The matrix exponentials of skew-symmetric matrices, for any finite angles.

    Angles θ are as accurate as entries of the matrix hold them: to about 2e-16 θ, for n = 2 and 3 to about 2e-16. The results are
    rotations to rounding for every θ.

    :raises ValueError: an entry is NaN or infinite, or a matrix is not skew-symmetric
    """
    return _each(_core.rotation_exp, "skew", skew)


def rotation_log(rotations: Any, *, tolerance: float | None = None) -> np.ndarray:
    """Principal logarithms of rotations: skew-symmetric matrices with angles in [−π, π]."""
    array = _rotations("rotations", rotations, tolerance)
    return _core.rotation_log(array).reshape(array.shape)


def nearest_rotation(matrices: Any) -> np.ndarray:
    """The rotations nearest to matrices in the Frobenius norm."""
    return _each(_core.nearest_rotation, "matrices", _plain(matrices))
