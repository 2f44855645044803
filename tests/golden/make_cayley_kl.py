"""Writes cayley_kl.inc: KL(C_N(M, kappa) || uniform) and its derivative, to 25 digits, from the closed form

    KL_N = N(N-1)/2 [log(1+kappa) - log(1-kappa)] - (N-1) [2k log(1+kappa) + S_N],   k = N // 2,
    S_N = sum_{l<k} kappa^(2l)/(2l) (N even),  sum_{l<=k} kappa^(2l-1)/(2l-1) (N odd)

in 120-digit arithmetic. Run it in this folder; needs mpmath. The values of kappa are exact in double, all but the last
few also in float.
"""
import mpmath as mp

mp.mp.dps = 120


def kl(n, kappa):
    k = n // 2
    if n % 2 == 0:
        s = mp.fsum(kappa ** (2 * l) / (2 * l) for l in range(1, k))
    else:
        s = mp.fsum(kappa ** (2 * l - 1) / (2 * l - 1) for l in range(1, k + 1))
    plus, minus = mp.log(1 + kappa), mp.log(1 - kappa)
    return mp.mpf(n * (n - 1)) / 2 * (plus - minus) - (n - 1) * (2 * k * plus + s)


kappas = ([mp.mpf(2) ** -e for e in (60, 40, 24, 12, 6, 3, 2)]
          + [mp.mpf(j) / 64 for j in (21, 29, 31, 32, 33, 36, 40, 48, 56, 61)]
          + [1 - mp.mpf(2) ** -e for e in (8, 16, 22, 30, 40, 52)])
with open("cayley_kl.inc", "w") as out:
    out.write("// {N, kappa, KL, dKL/dkappa}; written by make_cayley_kl.py\n")
    for n in (2, 3, 4, 5, 6, 7, 8, 15, 16):
        for kappa in kappas:
            value = kl(n, kappa)
            slope = mp.diff(lambda x: kl(n, x), kappa, h=mp.mpf(2) ** -150)
            row = [mp.nstr(x, 25, min_fixed=1, max_fixed=0) for x in (kappa, value, slope)]
            out.write("{%d, %s},\n" % (n, ", ".join(row)))
