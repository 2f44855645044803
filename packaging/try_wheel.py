"""Trains a small network with the installed package at every level of processors that the package has and this machine supports.

Prints the level, the accuracy and the seconds of the training. The levels need not compute the same bits."""

import os
import pathlib
import subprocess
import sys

PROGRAM = """
import time, sheafnn
data = sheafnn.karate_club()
begin = time.perf_counter()
model = sheafnn.SheafClassifier("bsnn", "diagonal", 2, epochs=200, patience=200).fit(data, split=0)
seconds = time.perf_counter() - begin
print(sheafnn.cpu_level(), f"{model.score(data):.3f} of the test nodes, {seconds:.2f} s")
assert model.score(data) > 0.7, model.score(data)
"""


def main():
    import sheafnn

    package = pathlib.Path(sheafnn.__file__).parent
    levels = sorted(folder.name for folder in package.glob("x86-64*"))
    if levels:
        from sheafnn import _processor

        here = [level for level in levels if level in _processor.levels()]
        print(f"the package has {', '.join(levels)}; this machine tries {', '.join(here)}")
    else:
        here = [sheafnn.cpu_level()]
    for level in here:
        subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], check=True, env={**os.environ, "SHEAFNN_CPU_LEVEL": level})


if __name__ == "__main__":
    main()
