"""Writes heat_kernel_reference.inc: the heat kernel of SO(3) by mpmath, from the series over characters alone, at 400 digits.

usage: python3 make_heat_kernel_reference.py > heat_kernel_reference.inc
Each row: sine and cosine of half of the angle, t, log f, d log f / d tr R, d log f / dt.
"""
import math
import random

import mpmath as mp


def kernel(sine, cosine, t):
    # The terms are up to 1, the sum as small as exp(-pi^2/2t): so many digits cancel.
    mp.mp.dps = 60 + int(2.2 / t)
    sine, cosine, t = mp.mpf(sine), mp.mpf(cosine), mp.mpf(t)
    y = 2 * (cosine**2 - sine**2) / (cosine**2 + sine**2)
    before, character, slope_before, slope = mp.mpf(-1), mp.mpf(1), mp.mpf(0), mp.mpf(0)
    f = derivative = time = mp.mpf(0)
    l = 0
    while True:
        weight = (2 * l + 1) * mp.exp(-l * (l + 1) * t / 2)
        if l > 2 and weight * (2 * l + 1) ** 5 < mp.mpf(10) ** (-mp.mp.dps):
            break
        f += weight * character
        derivative += weight * slope
        time -= weight * l * (l + 1) * character / 2
        before, character, slope_before, slope = character, y * character - before, slope, character + y * slope - slope_before
        l += 1
    return [mp.log(f) if t < 30 else mp.log1p(f - 1), derivative / f, time / f]


rng = random.Random(17)
for t in [0.003, 0.01, 0.05, 0.2, 0.7, 1.0, 1.5, 1.999, 2.0, 2.5, 5.0, 20.0, 60.0]:
    angles = [math.pi * (k + 0.5) / 7 for k in range(7)]
    angles += [10.0 ** rng.uniform(-12, -1) for _ in range(3)] + [min(3.0, math.sqrt(t) * rng.uniform(0.1, 5)) for _ in range(3)]
    pairs = [(math.sin(a / 2), math.cos(a / 2)) for a in angles]
    rests = [10.0 ** rng.uniform(-12, -1) for _ in range(3)] + [min(3.0, t * rng.uniform(0.05, 2)) for _ in range(3)]
    pairs += [(math.cos(a / 2), math.sin(a / 2)) for a in rests] + [(0.0, 1.0), (1.0, 0.0)]
    for s, c in pairs:
        values = [float(v) for v in kernel(s, c, t)]
        print("{" + ", ".join(v.hex() for v in [s, c, t] + values) + "},")
