#!/usr/bin/env python3
"""usage: figures.py [FOLDER]   draws the pictures of docs/concepts.md with the Python package (default: docs/pictures)."""

import io
import pathlib
import sys

import matplotlib
import numpy as np
import scipy.sparse.linalg

import sheafnn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from dark_scheme import with_dark_scheme  # noqa: E402  (after its folder)

matplotlib.use("svg")
matplotlib.rcParams.update(
    {"svg.hashsalt": "sheafnn", "svg.fonttype": "path", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
)
import matplotlib.pyplot as plt  # noqa: E402  (after the backend)

BLUE, ORANGE, GREY = "#1d5a8c", "#d9822b", "#9aa5ae"
WIDTH = 5.6  # inches: the texts, of 10 points, can be read where the picture is as wide as a telephone


def save(figure, path):
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(with_dark_scheme(text.getvalue()), encoding="utf-8")


def turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def diffused(laplacian, x, time):
    return scipy.sparse.linalg.expm_multiply(-time * laplacian, x)


def ring(count=8):
    """A ring of nodes as a dataset, and their positions."""
    edges = [[u, (u + 1) % count] for u in range(count)]
    angles = 2 * np.pi * np.arange(count) / count
    return sheafnn.Dataset.from_numpy(edges, np.eye(count)), np.stack([np.cos(angles), np.sin(angles)], 1)


def sheaf_of_gauges(data, gauges):
    """The flat sheaf with F_{u ⊴ e} = G_uᵀ: its sections are x_u = G_u x."""
    return np.stack([gauges[u].T for u, _ in data.arcs])


def draw_vectors(axes, data, at, x, title):
    for u, v in data.edges:
        axes.plot(*at[[u, v]].T, color=GREY, linewidth=1, zorder=1)
    axes.quiver(*at.T, x[:, 0], x[:, 1], color=BLUE, angles="xy", scale_units="xy", scale=1.6, width=0.016, zorder=3)
    axes.scatter(*at.T, s=22, color="white", edgecolor=BLUE, zorder=2)
    axes.set(title=title, aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
    axes.axis("off")


def draw_diffusion(folder):
    data, at = ring()
    gauges = [turn(2 * np.pi * u / 8) for u in range(8)]
    x = 0.45 * np.random.default_rng(11).normal(size=(8, 2)) + np.array([g @ [0.5, 0.2] for g in gauges]) + [0.35, 0.35]
    trivial = sheafnn.sheaf_laplacian(data, np.stack([np.eye(2)] * 16), family="special-orthogonal")
    rotating = sheafnn.sheaf_laplacian(data, sheaf_of_gauges(data, gauges), family="special-orthogonal")
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.3))
    draw_vectors(axes[0], data, at, x, "vectors")
    draw_vectors(axes[1], data, at, diffused(trivial, x.ravel(), 20).reshape(8, 2), "diffused: identity")
    draw_vectors(axes[2], data, at, diffused(rotating, x.ravel(), 20).reshape(8, 2), "diffused: rotations")
    save(figure, folder / "concept_diffusion.svg")


def draw_classes(folder):
    data = sheafnn.karate_club()
    codes = data.codes
    x = np.random.default_rng(1).normal(size=34) + np.where(codes == 0, 0.5, -0.5)
    arcs = data.arcs
    same = np.ones((len(arcs), 1, 1))
    # −1 at the end of class 1 of an edge between the classes.
    between = np.where((codes[arcs[:, 0]] != codes[arcs[:, 1]]) & (codes[arcs[:, 0]] == 1), -1.0, 1.0)
    times = np.linspace(0, 3, 60)
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.6), sharey=True)
    for ax, maps, title in ((axes[0], same, "all maps 1"), (axes[1], between[:, None, None], "−1 between the classes")):
        laplacian = sheafnn.sheaf_laplacian(data, maps)
        paths = np.stack([diffused(laplacian, x, t) for t in times])
        for u in range(34):
            ax.plot(times, paths[:, u], color=(BLUE, ORANGE)[codes[u]], linewidth=0.8)
        ax.set(title=title, xlabel="time")
    axes[0].set_ylabel("value of a node")
    save(figure, folder / "concept_classes.svg")


def draw_cayley(folder):
    angles = np.linspace(-np.pi, np.pi, 401)
    matrices = np.stack([turn(a) for a in angles])
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    for kappa, shade in ((0.0, 0.25), (0.3, 0.5), (0.6, 0.75), (0.8, 1.0)):
        density = sheafnn.rotations.Cayley(np.eye(2), kappa).pdf(matrices)
        axes[0].plot(angles, density, color=BLUE, alpha=shade, label=f"κ = {kappa:g}")
    axes[0].set(xlabel="angle from the location", ylabel="density", title="Cayley on SO(2)")
    axes[0].legend(frameon=False, fontsize=9, handlelength=1, loc="upper right", borderaxespad=0)
    kappas = np.linspace(0, 0.95, 60)
    for n, shade in ((2, 0.4), (3, 0.7), (4, 1.0)):
        kl = [sheafnn.rotations.Cayley(np.eye(n), k).kl_to_uniform() for k in kappas]
        axes[1].plot(kappas, kl, color=ORANGE, alpha=shade, label=f"SO({n})")
    axes[1].set(xlabel="concentration κ", ylabel="nats", title="KL to uniform")
    axes[1].legend(frameon=False)
    save(figure, folder / "concept_cayley.svg")


def main():
    here = pathlib.Path(__file__).resolve().parents[1] / "pictures"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    draw_diffusion(folder)
    draw_classes(folder)
    draw_cayley(folder)


if __name__ == "__main__":
    main()
