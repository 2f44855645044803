"""sheafnn.torch.rotations: gradients against finite differences along rotations, numbers of sheafnn.rotations, refused arguments."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import sheafnn  # noqa: E402
from sheafnn.torch.rotations import Cayley, Haar, IsotropicGaussian, LeonCayley, MatrixFisher  # noqa: E402


def skews(shape, n, seed):
    a = torch.randn(*shape, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return (0.4 * (a - a.mT)).requires_grad_()


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("kind, kappa", [(Cayley, (0.2, 0.8)), (LeonCayley, (0.5, 3.0))])
def test_gradients(kind, kappa, n):
    kappa, a, b = numbers(*kappa), skews((2,), n, 1), skews((3, 1), n, 2)
    exp = torch.linalg.matrix_exp

    def log_prob(kappa, a, b):
        return kind(exp(a - a.mT), kappa).log_prob(exp(b - b.mT))

    assert torch.autograd.gradcheck(log_prob, (kappa, a, b), atol=1e-5)
    assert torch.autograd.gradcheck(lambda k: kind(torch.eye(n, dtype=k.dtype), k).kl_to_uniform(), kappa)
    assert torch.autograd.gradcheck(lambda k: kind(torch.eye(n, dtype=k.dtype), k).entropy(), kappa)
    if kind is Cayley:
        assert torch.autograd.gradcheck(lambda k, a: kind(exp(a - a.mT), k).rsample((3,), seed=4), (kappa, a))


def test_gradients_of_the_isotropic_gaussian_distribution():
    sigma, a, b = numbers(0.4, 1.7), skews((2,), 3, 1), skews((3, 1), 3, 2)
    exp = torch.linalg.matrix_exp

    def log_prob(sigma, a, b):
        return IsotropicGaussian(exp(a - a.mT), sigma).log_prob(exp(b - b.mT))

    assert torch.autograd.gradcheck(log_prob, (sigma, a, b), atol=1e-5)
    assert torch.autograd.gradcheck(lambda s: IsotropicGaussian(torch.eye(3, dtype=s.dtype), s).kl_to_uniform(), sigma)
    # E tr P = 3 exp(-sigma^2): the derivative of expectations, to a few standard errors.
    eye, scale = torch.eye(3, dtype=torch.float64), numbers(0.7)
    IsotropicGaussian(eye, scale[0]).rsample((20000,), seed=5).diagonal(dim1=-2, dim2=-1).sum(-1).mean().backward()
    assert abs(float(scale.grad[0]) + 6 * 0.7 * np.exp(-0.49)) < 0.1


@pytest.mark.parametrize("n", [2, 3])
def test_gradients_of_the_matrix_fisher_distribution(n):
    f = torch.randn(2, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    b, exp = skews((3, 1), n, 2), torch.linalg.matrix_exp
    assert torch.autograd.gradcheck(lambda f, b: MatrixFisher(f).log_prob(exp(b - b.mT)), (f, b), atol=1e-5)
    assert torch.autograd.gradcheck(lambda f: MatrixFisher(f).kl_to_uniform(), f)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_numbers_of_the_library(n):
    m = torch.linalg.matrix_exp(skews((), n, 3).detach())
    theirs = [(Cayley(m, 0.6), sheafnn.rotations.Cayley(m.numpy(), 0.6)), (LeonCayley(m, 2.0), sheafnn.rotations.LeonCayley(m.numpy(), 2.0)),
              (Haar(n, dtype=torch.float64), sheafnn.rotations.Haar(n))]
    if n < 4:
        theirs.append((MatrixFisher(2 * m), sheafnn.rotations.MatrixFisher(2 * m.numpy())))
    if n == 3:
        theirs.append((IsotropicGaussian(m, 0.6), sheafnn.rotations.IsotropicGaussian(m.numpy(), 0.6)))
    for ours, own in theirs:
        samples = ours.sample((50,), seed=9)
        np.testing.assert_allclose(samples.numpy(), own.sample(50, seed=9), rtol=0, atol=1e-14)
        np.testing.assert_array_equal(ours.log_prob(samples).numpy(), own.logpdf(samples.numpy()))
        assert float(ours.kl_to_uniform()) == own.kl_to_uniform()
        assert float(ours.entropy()) == own.entropy()
        np.testing.assert_array_equal(ours.mean.numpy(), own.mean())


def test_shapes_and_seeds():
    m = torch.eye(3).expand(4, 1, 3, 3)
    d = Cayley(m, torch.tensor([0.1, 0.5]))
    assert d.batch_shape == (4, 2) and d.event_shape == (3, 3)
    assert d.sample((5, 6), seed=1).shape == (5, 6, 4, 2, 3, 3)
    assert d.log_prob(torch.eye(3)).shape == (4, 2)
    assert torch.equal(d.sample(seed=1), d.rsample(seed=1))
    torch.manual_seed(2)
    one = d.sample()
    torch.manual_seed(2)
    assert torch.equal(d.sample(), one)
    assert torch.equal(Haar(3).log_prob(one), torch.zeros(4, 2))
    assert one.dtype == torch.float32


def test_refused_arguments():
    eye = torch.eye(3)
    with pytest.raises(ValueError, match=r"\[0\]: CayleyDistribution: concentration: 1 is not allowed; must be in \[0, 1\)"):
        Cayley(eye, 1.0)
    with pytest.raises(ValueError, match=r"\[1\]: CayleyDistribution: location"):
        Cayley(torch.stack([eye, 2 * eye]), 0.5)
    with pytest.raises(ValueError, match="logpdf"):
        Cayley(eye, 0.5).log_prob(2 * eye)
    with pytest.raises(ValueError, match="the last two axes must have the same length"):
        Cayley(torch.zeros(3, 2), 0.5)
    with pytest.raises(ValueError, match="value: .* must be torch.float32, ... x 3 x 3"):
        Cayley(eye, 0.5).log_prob(torch.eye(2))
    with pytest.raises(NotImplementedError, match="LeonCayley has no rsample; use sample"):
        LeonCayley(eye, 1.0).rsample()
    with pytest.raises(ValueError, match="dimension: 4 is not allowed; must be between 2 and 3"):
        MatrixFisher(torch.eye(4))
    with pytest.raises(TypeError, match="location: list is not allowed"):
        Cayley([[1.0]], 0.5)
    for value in ("0.5", None):
        with pytest.raises(TypeError, match=f"concentration: {value!r} is not allowed; expected a tensor or a number"):
            Cayley(torch.eye(3), value)
    with pytest.raises(TypeError, match="scale: None is not allowed; expected a tensor or a number"):
        IsotropicGaussian(torch.eye(3), None)
    with pytest.raises(ValueError, match=r"scale: a batch of shape \(2,\) is not allowed; must broadcast with \(3,\), the batch of location"):
        IsotropicGaussian(torch.eye(3).expand(3, 3, 3), torch.ones(2))
    with pytest.raises(ValueError, match=r"value: a batch of shape \(3,\) is not allowed; must broadcast with \(2,\), the batch of the dist"):
        Cayley(torch.eye(3), torch.zeros(2)).log_prob(torch.eye(3).expand(3, 3, 3))
    with pytest.raises(ValueError, match="concentration: torch.complex64 is not allowed; must be real numbers"):
        Cayley(eye, torch.tensor(0.5j))
    with pytest.raises(TypeError, match="sample_shape: 5 is not allowed; expected a sequence of whole numbers"):
        Cayley(eye, 0.5).sample(5)
    with pytest.raises(ValueError, match=r"batch_shape\[0\]: -1 is not allowed; must be between 0 and 4294967295"):
        Haar(3, (-1,))
    for dtype in (torch.float16, torch.int64, torch.complex64):
        with pytest.raises(ValueError, match=f"dtype: {dtype} is not allowed; must be torch.float32 or torch.float64"):
            Haar(3, dtype=dtype)


@pytest.mark.parametrize("call", [
    lambda d, p: d.log_prob(p), lambda d, p: d.kl_to_uniform(), lambda d, p: d.rsample(seed=1)[..., 0, 1],
])
def test_derivatives_of_derivatives_and_transforms_are_refused(call):
    kappa = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    eye = torch.eye(3, dtype=torch.float64)
    p = torch.tensor(sheafnn.rotations.haar(1, 3, seed=2)[0])
    of = lambda kappa: call(Cayley(eye, kappa), p)  # noqa: E731
    first = torch.autograd.grad(of(kappa), kappa, create_graph=True)[0]
    assert first == torch.autograd.grad(of(kappa), kappa)[0] and first != 0
    with pytest.raises(RuntimeError, match="derivatives of derivatives of sheafnn.torch are not available"):
        torch.autograd.grad(first, kappa)
    with pytest.raises(RuntimeError, match="derivatives of derivatives of sheafnn.torch are not available"):
        torch.autograd.functional.jvp(of, kappa.detach(), torch.ones_like(kappa))
    for transform in (torch.func.grad(of), torch.func.jacfwd(of)):
        with pytest.raises(NotImplementedError, match="use torch.autograd.grad"):
            transform(kappa.detach())


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
def test_means_that_torch_jit_records():
    mean = lambda kappa: Cayley(torch.eye(3), kappa).mean  # noqa: E731
    recorded = torch.jit.trace(mean, (torch.tensor([0.2, 0.5]),))
    other = torch.tensor([0.3, 0.8])
    assert torch.equal(recorded(other), mean(other))
