"""Writes rotation_reference.inc: figures of distributions of rotations, computed without the formulas of the library.

Rows {what, N, a, b, c, d, value}. Needs numpy, scipy and mpmath; run it in this folder. Averages over SO(n) use Weyl's
integration formula (class functions) or products of quadrature rules in Euler-like coordinates of unit quaternions; the
integrands are analytic and periodic, so the rules converge to rounding.

kl_pair          KL(C_N(M1, a) || C_N(M2, b)), M1^T M2 a turn by c in one plane (N = 2, 3), c = 0 otherwise
leon             log of the mean of det((I + U)/2)^a over uniform U
fisher           log of the mean of exp(tr diag(a, b, c) U), N = 3; log I0(2a), N = 2
fisher_mean      E U_ii of the same, i = d
cayley_cdf, leon_cdf, fisher_cdf   P(angle <= b) for concentration a (fisher: F = a I)
haar_quantile    angle with probability a below
acg_kl           KL(ACG(diag(a, b, c)) || uniform), N = 2, 3 entries
kolmogorov       P(K > a), Kolmogorov's limit law (scipy)
r_cayley, r_fisher   densities of the rotation angle on [0, pi] as published for the R package rotations (Stanfill, Hofmann,
                 Genschel, R Journal 2014): concentration a, angle b
"""
import itertools

import mpmath as mp
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy import special

mp.mp.dps = 30
rows = []


def add(what, n, value, *parameters):
    parameters = list(parameters) + [0.0] * (4 - len(parameters))
    rows.append('{"%s", %d, %s, %s},' % (what, n, ", ".join(repr(float(x)) for x in parameters),
                                         mp.nstr(mp.mpf(value), 20, min_fixed=1, max_fixed=0)))


def log_cayley(n, kappa, cosines):
    """log density from the cosines of the eigenangles of P M^T."""
    det = sum(np.log1p(kappa * kappa - 2 * kappa * c) for c in cosines)
    if n % 2:
        det = det + np.log1p(-kappa)
    return (n - 1) * (n / 2 * np.log1p(-kappa * kappa) - det)


def weyl_mean(n, f, points=240):
    """Mean over SO(n) of a class function of the cosines of the eigenangles."""
    k = n // 2
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points
    grid = np.meshgrid(*[np.cos(angles)] * k, indexing="ij")
    weight = np.ones_like(grid[0])
    for i, j in itertools.combinations(range(k), 2):
        weight = weight * (grid[i] - grid[j]) ** 2
    if n % 2:
        for c in grid:
            weight = weight * (1 - c)
    return np.sum(weight * f(grid)) / np.sum(weight)


# KL between two Cayley distributions.
def kl_plane(k1, k2, turn):
    f = lambda k, t: (1 - k * k) / (1 + k * k - 2 * k * mp.cos(t))
    return mp.quad(lambda t: f(k1, t) * (mp.log(f(k1, t)) - mp.log(f(k2, t + turn))), mp.linspace(-mp.pi, mp.pi, 17)) / (2 * mp.pi)


def kl_space(k1, k2, turn):
    """Y0 = turn by r about an axis, at angle arccos c to the axis of R; the angle of Y0 R from quaternions."""
    points = 4000
    r = 2 * np.pi * (np.arange(points) + 0.5) / points
    c, wc = leggauss(200)
    r, c = r[:, None], c[None, :]
    half = np.cos(r / 2) * np.cos(turn / 2) - np.sin(r / 2) * np.sin(turn / 2) * c
    first = log_cayley(3, k1, [np.cos(r)])
    second = log_cayley(3, k2, [2 * half**2 - 1])
    return np.sum((1 - np.cos(r)) * np.exp(first) * (first - second) * wc[None, :] / 2) / points


for k1, k2, turn in [(0.5, 0.7, 1.0), (0.9, 0.2, 3.0), (0.3, 0.3, 0.01), (0.8, 0.8, 2.0)]:
    add("kl_pair", 2, kl_plane(mp.mpf(k1), mp.mpf(k2), mp.mpf(turn)), k1, k2, turn)
for k1, k2, turn in [(0.5, 0.7, 1.0), (0.7, 0.5, 1.0), (0.8, 0.2, 3.0), (0.2, 0.8, 3.1), (0.3, 0.3, 0.5)]:
    add("kl_pair", 3, kl_space(k1, k2, turn), k1, k2, turn)
for n in (4, 5, 6, 7):
    for k1, k2 in [(0.5, 0.7), (0.6, 0.2), (0.0, 0.5)]:
        first = lambda c: log_cayley(n, k1, c)
        value = weyl_mean(n, lambda c: np.exp(first(c)) * (first(c) - log_cayley(n, k2, c)), 240 if n < 6 else 160)
        add("kl_pair", n, value, k1, k2, 0.0)

# Leon's normaliser: det((I + U)/2) is the product of (1 + cos)/2.
for n in (2, 3, 4, 5, 6, 7):
    for k in (1.0, 2.0, 7.0, 20.0):
        add("leon", n, np.log(weyl_mean(n, lambda c: np.prod([(1 + x) / 2 for x in c], axis=0) ** k, 160)), k)
for n in (2, 3):  # not an integer power: integrals over one angle
    for k in (mp.mpf("0.3"), mp.mpf("2.75")):
        weight = (lambda t: 1 / mp.pi) if n == 2 else (lambda t: (1 - mp.cos(t)) / mp.pi)
        add("leon", n, mp.log(mp.quad(lambda t: weight(t) * ((1 + mp.cos(t)) / 2) ** k, [0, mp.pi / 2, mp.pi])), k)


# Matrix Fisher: unit quaternions (sqrt(t) e^{ia}, sqrt(1-t) e^{ib}), t uniform on [0, 1].
def fisher(s):
    t, wt = leggauss(120)
    t, wt = (t + 1) / 2, wt / 2
    angle = 2 * np.pi * np.arange(120) / 120
    t, a, b = t[:, None, None], angle[None, :, None], angle[None, None, :]
    w, x = np.sqrt(t) * np.cos(a), np.sqrt(t) * np.sin(a)
    y, z = np.sqrt(1 - t) * np.cos(b), np.sqrt(1 - t) * np.sin(b)
    diagonal = [w**2 + x**2 - y**2 - z**2, w**2 - x**2 + y**2 - z**2, w**2 - x**2 - y**2 + z**2]
    power = sum(si * di for si, di in zip(s, diagonal)) - sum(s)
    density = np.exp(power) * wt[:, None, None] / 120**2
    total = density.sum()
    return sum(s) + np.log(total), [(density * d).sum() / total for d in diagonal]


for s in [(0.0, 0.0, 0.0), (0.1, 0.05, -0.02), (1.0, 1.0, 1.0), (3.0, 1.0, 0.5), (3.0, 1.0, -0.5), (8.0, 5.0, -5.0), (10.0, 9.0, 8.0), (12.0, 0.5, 0.0)]:
    value, mean = fisher(s)
    add("fisher", 3, value, *s)
    for i in range(3):
        add("fisher_mean", 3, mean[i], *s, i)
for s in (0.01, 0.5, 3.0, 15.9, 16.1, 200.0):
    add("fisher", 2, mp.log(mp.besseli(0, 2 * mp.mpf(s))), s)

# Angles.
for k in (0.0, 0.5, 0.95):
    for r in (0.001, 0.3, 2.0, 3.1):
        density = lambda t: (1 - mp.cos(t)) / mp.pi * (1 - mp.mpf(k) ** 2) ** 3 / ((1 - mp.mpf(k)) * (1 + mp.mpf(k) ** 2 - 2 * mp.mpf(k) * mp.cos(t))) ** 2
        add("cayley_cdf", 3, mp.quad(density, mp.linspace(0, r, 9)), k, r)
        flat = lambda t: (1 - mp.mpf(k) ** 2) / (1 + mp.mpf(k) ** 2 - 2 * mp.mpf(k) * mp.cos(t)) / (2 * mp.pi)
        add("cayley_cdf", 2, mp.mpf(1) / 2 + mp.quad(flat, mp.linspace(0, r, 9)), k, r)
for k in (0.0, 0.7, 30.0):
    for r in (0.01, 0.3, 2.0, 3.1):
        for n in (2, 3):
            weight = (lambda t: mp.mpf(1)) if n == 2 else (lambda t: 1 - mp.cos(t))
            density = lambda t: weight(t) * ((1 + mp.cos(t)) / 2) ** mp.mpf(k)
            part = mp.quad(density, mp.linspace(0, r, 9)) / mp.quad(density, mp.linspace(0, mp.pi, 9))
            add("leon_cdf", n, part if n == 3 else (1 + part) / 2, k, r)
for k in (0.0, 0.7, 30.0):
    for r in (0.01, 0.3, 2.0, 3.1):
        flat = lambda t: mp.exp(2 * mp.mpf(k) * (mp.cos(t) - 1))
        add("fisher_cdf", 2, (1 + mp.quad(flat, mp.linspace(0, r, 9)) / mp.quad(flat, mp.linspace(0, mp.pi, 17))) / 2, k, r)
        density = lambda t: (1 - mp.cos(t)) * mp.exp(2 * mp.mpf(k) * (mp.cos(t) - 1))
        add("fisher_cdf", 3, mp.quad(density, mp.linspace(0, r, 9)) / mp.quad(density, mp.linspace(0, mp.pi, 17)), k, r)
for p in ("1e-12", "1e-4", "0.1", "0.3", "0.5", "0.9", "0.999"):
    p = float(p)
    start = (6 * mp.pi * p) ** (mp.mpf(1) / 3) if p < 0.5 else mp.mpf(2)
    add("haar_quantile", 3, mp.findroot(lambda u: u - mp.sin(u) - mp.pi * mp.mpf(p), start), p)


# Angular central Gaussian.
def acg_plane(a, b):
    f = lambda t: 1 / mp.sqrt(a * b) / (mp.cos(t) ** 2 / a + mp.sin(t) ** 2 / b)
    return mp.quad(lambda t: f(t) * mp.log(f(t)), mp.linspace(0, mp.pi, 17)) / mp.pi


def acg_sphere(l):
    z, wz = leggauss(100)
    angle = 2 * np.pi * np.arange(200) / 200
    z, angle = z[:, None], angle[None, :]
    x2, y2, z2 = (1 - z**2) * np.cos(angle) ** 2, (1 - z**2) * np.sin(angle) ** 2, z**2
    f = np.prod(l) ** -0.5 * (x2 / l[0] + y2 / l[1] + z2 / l[2]) ** -1.5
    return np.sum(wz[:, None] / 2 * f * np.log(f)) / 200


add("acg_kl", 2, acg_plane(mp.mpf(3), mp.mpf("0.5")), 3.0, 0.5)
add("acg_kl", 2, acg_plane(mp.mpf(1), mp.mpf("0.01")), 1.0, 0.01)
for l in [(2.0, 1.0, 0.5), (1.0, 1.0, 0.25), (0.125, 4.0, 4.0)]:
    add("acg_kl", 3, acg_sphere(l), *l)

for x in (0.3, 0.8, 1.0, 1.36, 2.0):
    add("kolmogorov", 0, special.kolmogorov(x), x)
for k in (mp.mpf("0.5"), mp.mpf(2), mp.mpf(12)):
    for r in (mp.mpf("0.2"), mp.mpf(1), mp.mpf(3)):
        # The package's densities are of r on [-pi, pi]; twice that on [0, pi].
        cayley = mp.gamma(k + 2) / (mp.sqrt(mp.pi) * 2**k * mp.gamma(k + mp.mpf(1) / 2)) * (1 + mp.cos(r)) ** k * (1 - mp.cos(r))
        fisher_density = 2 * mp.exp(2 * k * mp.cos(r)) * (1 - mp.cos(r)) / (2 * mp.pi * (mp.besseli(0, 2 * k) - mp.besseli(1, 2 * k)))
        add("r_cayley", 3, cayley, k, r)
        add("r_fisher", 3, fisher_density, k, r)

with open("rotation_reference.inc", "w") as out:
    out.write("// {what, N, a, b, c, d, value}; written by make_rotation_reference.py\n")
    out.write("\n".join(rows) + "\n")
