#!/usr/bin/env python3
"""Puts one fault at a time into the mathematics of a copy of the headers and tells which tests notice.

usage: mutations.py [NAME...]   default: all

Needs what the tests need, and g++ or $CXX. A fault that no test notices ends the program with status 1.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

# name, header, what stands there (once), what the fault makes of it, and tests that should notice, with what they link.
FAULTS = [
    ("transposed index of a product", "core/small_matrix.hpp", "sum += a(k, i) * b(k, j);", "sum += a(i, k) * b(k, j);",
     ["test_small_matrix.cpp"]),
    ("counter", "random/philox.hpp", "0xBB67AE85u", "0xBB67AE86u", ["test_random.cpp"]),
    ("reverse arc", "graph/graph.hpp", "reverse_[backward[static_cast<std::size_t>(e)]] = forward;",
     "reverse_[backward[static_cast<std::size_t>(e)]] = backward[static_cast<std::size_t>(e)];", ["test_graph.cpp"]),
    ("transposed index of a derivative", "rotation/cayley_transform.hpp", "left(i, j) = (i == j ? T(1) : T(0)) - a(j, i)",
     "left(i, j) = (i == j ? T(1) : T(0)) - a(i, j)", ["test_cayley_transform.cpp"]),
    ("missing factor of the density", "rotation/cayley_distribution.hpp", "return T(N - 1) * (T(0.5 * N)",
     "return T(N) * (T(0.5 * N)", ["test_cayley_distribution.cpp"]),
    ("sign of the divergence", "rotation/cayley_kl.hpp", "rest = T(0.5) * (log_plus - log_minus)",
     "rest = T(0.5) * (log_minus - log_plus)", ["test_cayley_kl.cpp"]),
    ("weight of a bin", "uncertainty/calibration.hpp", "r.error += std::abs(sum) / n;",
     "r.error += std::abs(sum) / count;", ["test_calibration.cpp"]),
    ("scale of a conformal map", "sheaf/families/conformal.hpp", "scale * map_bar(k % D, k / D)",
     "map_bar(k % D, k / D)", ["test_conformal_posterior.cpp"]),
    ("moment of Adam", "nn/adam.hpp", "T(S(1 - C::beta2)) * g * g", "T(S(1 - C::beta2)) * g", ["test_nn.cpp"]),
    ("half of a divergence", "posterior/normal.hpp", "sum += T(0.5) * ((from_prior", "sum += T(1) * ((from_prior",
     ["test_posterior.cpp"]),
    ("sign of a diffusion's derivative", "layers/diffusion.hpp",
     "kernels::add_block_times<D, Sizes::transport, Before, true>(sheaf.transport_block(e), other_bar, w_bar);",
     "kernels::add_block_times<D, Sizes::transport, Before, false>(sheaf.transport_block(e), other_bar, w_bar);",
     ["test_sheaf_diffusion_layer.cpp", "test_network_sheaf.cpp"]),
    ("weight of the divergence", "bsnn/elbo.hpp", "r.loss + options.kl_weight * r.kl", "r.loss + r.kl",
     ["test_losses.cpp"]),
    ("decay in the batch engine", "batch/optimiser.hpp", "1 - learning_rate * decay", "1 + learning_rate * decay",
     ["test_batch_training.cpp"]),
]


def compile_test(compiler, include, sources, program):
    """Compiles a test with the headers of `include`; returns what the compiler says when it fails."""
    command = [compiler, "-std=c++20", "-Og", "-march=native", "-I", include, "-I", os.path.join(ROOT, "tests"),
               "-I", os.path.join(ROOT, "examples"), "-isystem", "/usr/include/eigen3",
               f'-DSHEAFNN_TEST_DATA="{os.path.join(ROOT, "tests")}"', "-o", program, *sources, "-lz", "-pthread"]
    return None if (done := subprocess.run(command, capture_output=True, text=True)).returncode == 0 else done.stderr


def passes(program):
    try:
        return subprocess.run([program], capture_output=True, timeout=600).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def helpers(test):
    """What a test links beside itself: NAME.cpp of the headers test_NAME.hpp and NAME.hpp of this folder it includes."""
    found, queue = set(), [os.path.join(ROOT, "tests", test)]
    while queue:
        for line in open(queue.pop()):
            if not line.startswith('#include "'):
                continue
            name = line.split('"')[1]
            header = os.path.join(ROOT, "tests", name)
            source = os.path.join(ROOT, "tests", "test_" + name[:-4] + ".cpp")
            if os.path.exists(header) and header not in found:
                found.add(header)
                queue.append(header)
                if os.path.exists(source):
                    found.add(source)
                    queue.append(source)
    return sorted(f for f in found if f.endswith(".cpp") and os.path.basename(f) != test)


def main():
    wanted = sys.argv[1:]
    names = [fault[0] for fault in FAULTS]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"mutations.py: no fault '{unknown[0]}'; choose {', '.join(names)}")
    compiler = os.environ.get("CXX", "g++")
    missed = 0
    with tempfile.TemporaryDirectory() as work:
        main_object = os.path.join(work, "main.o")
        subprocess.run([compiler, "-std=c++20", "-c", os.path.join(ROOT, "tests", "main.cpp"), "-o", main_object],
                       check=True)
        for name, header, before, after, tests in FAULTS:
            if wanted and name not in wanted:
                continue
            include = os.path.join(work, "include")
            shutil.rmtree(include, ignore_errors=True)
            shutil.copytree(os.path.join(ROOT, "include"), include)
            path = os.path.join(include, "sheafnn", header)
            text = open(path).read()
            if text.count(before) != 1:
                sys.exit(f"{name}: {header} has '{before}' {text.count(before)} times, not once")
            noticed = []
            for test in tests:
                program = os.path.join(work, "test")
                sources = [main_object, os.path.join(ROOT, "tests", test), *helpers(test)]
                open(path, "w").write(text)
                if error := compile_test(compiler, include, sources, program):
                    sys.exit(f"{name}: {test} does not compile:\n{error}")
                if not passes(program):
                    sys.exit(f"{name}: {test} fails without the fault")
                open(path, "w").write(text.replace(before, after))
                if error := compile_test(compiler, include, sources, program):
                    sys.exit(f"{name}: {test} does not compile with the fault:\n{error}")
                if not passes(program):
                    noticed.append(test)
            print(f"{name:34} {header:34} {', '.join(noticed) if noticed else 'NOT NOTICED'}", flush=True)
            missed += not noticed
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
