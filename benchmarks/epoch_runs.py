"""Runs of the program epochs, and the machine they ran on; for anchors.py and guard.py."""
import os
import pathlib
import subprocess
import tempfile
from typing import Any

from authors_code import own_milliseconds

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run_epochs(program: pathlib.Path, cell: str, data: str | None, threads: int, seconds: float) -> dict[str, float]:
    """Median milliseconds of the cells whose names begin with `cell`, by name."""
    environment = {name: value for name, value in os.environ.items() if name != "SHEAFNN_DATA"}
    if data:
        environment["SHEAFNN_DATA"] = data
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "epochs.json")
        subprocess.run([program, "--threads", str(threads), f"--benchmark_filter=^{cell}", f"--benchmark_min_time={seconds}",
                        f"--benchmark_out={file}", "--benchmark_out_format=json"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=environment)
        return own_milliseconds(file) if os.path.getsize(file) else {}  # empty: no cell matches


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    """Processor, number of processors, and commit."""
    models = [line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
              if line.startswith("model name")]
    changed = bool(git("status", "--porcelain", "--untracked-files=no"))
    return {"machine": models[0] if models else "unknown", "processors": len(os.sched_getaffinity(0)),
            "commit": git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")}
