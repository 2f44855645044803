#!/usr/bin/env python3
"""usage: check_snippets.py [--light] [COMPILER [FLAG...]]   do the C++ blocks of README.md and docs/ compile?

Each becomes a function, or a namespace, of one translation unit, between the declarations that the text around it takes for granted
(the table below) and, where it is a template, a use of it. A block that the table does not have is an error. "…" stands for
anything: initialisers with it are left out. Complete programs must be an example, word for word, and excerpts part of one. Blocks of
DEVICE_PAGES are compiled against tests/cuda/stand_in.

With --light, statements stand in a template that nobody instantiates: names, types, overloads and constraints are checked, but
bodies of the library's templates are not compiled. That takes half of the time."""

import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]

DATA = "const sheafnn::Dataset data = sheafnn::karate_club();\n"
MODEL = DATA + (
    "using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;\n"
    "Model model({.features = data.feature_count(), .classes = data.class_count});\n"
)
LAPLACIAN = MODEL + (
    "const auto sheaf = sheafnn::learned_sheaf(model, data);\n"
    "const sheafnn::SheafLaplacian laplacian(sheaf, sheafnn::Normalisation::none);\n"
    "const std::vector<std::int32_t> nodes = {0};\nconst Eigen::MatrixXd values(3, 1);\n"
)
LOWER = "@docs/extending.md 0\n"  # the block before
ROTATIONS = "@docs/cpp/rotations.md 0\n"
USING = "using namespace sheafnn;\n"

# Block: (what it is, what comes before, what comes behind). "function": statements; "namespace": declarations; "program": the
# example that it is; "excerpt": the example that has it.
BLOCKS = {
    "README.md 0": ("program", "examples/minimal.cpp", ""),
    "docs/choose_a_network.md 0": (
        "function", "sheafnn::Dataset data = sheafnn::karate_club();\nconst std::vector<double> values;\nsheafnn::ModelOptions options;\n", ""
    ),
    "docs/cpp/batches.md 0": ("function", MODEL, ""),
    "docs/cpp/files.md 0": ("function", MODEL, ""),
    "docs/cpp/graphs.md 0": ("function", "", ""),
    "docs/cpp/graphs.md 1": ("function", "", ""),
    "docs/cpp/graphs.md 2": ("function", "", ""),
    "docs/cpp/layers.md 0": ("function", "", ""),
    "docs/cpp/models.md 0": ("function", "", ""),
    "docs/cpp/numbers.md 0": ("function", "", ""),
    "docs/cpp/posteriors.md 0": ("function", "", ""),
    "docs/cpp/ranks.md 0": ("excerpt", "examples/minimal_mpi.cpp", ""),
    "docs/cpp/ranks.md 1": ("excerpt", "examples/minimal_mpi.cpp", ""),
    "docs/cpp/rotations.md 0": ("function", "", ""),
    **{f"docs/cpp/rotations.md {i}": ("function", ROTATIONS, "") for i in range(1, 11)},
    "docs/cpp/sheaves.md 0": ("function", "", ""),
    "docs/cpp/sheaves.md 1": ("function", "@docs/cpp/sheaves.md 0\n", ""),
    "docs/cpp/sheaves.md 2": ("function", "@docs/cpp/sheaves.md 0\n@docs/cpp/sheaves.md 1\n", ""),
    "docs/cpp/training.md 0": ("function", MODEL, ""),
    "docs/cpp/uncertainty.md 0": ("function", MODEL, ""),
    "docs/cuda.md 0": ("function", "", ""),
    "docs/cuda.md 1": ("function", MODEL + "const std::vector<double> class_weights(2, 1.0);\n", ""),
    "docs/cuda.md 2": ("function", MODEL + "std::vector<Model> models;\n", ""),
    "docs/data.md 0": ("function", "", ""),
    "docs/distributed.md 0": ("program", "examples/minimal_mpi.cpp", ""),
    "docs/edges.md 0": ("function", DATA, ""),
    "docs/extending.md 0": ("namespace", "", "sheafnn::Nsd<LowerTriangular<3>> instance({});\n"),
    "docs/extending.md 1": (
        "namespace", LOWER + "template <class F> using MyPosterior = sheafnn::NormalPosterior<F>;\n",
        "Deterministic a({}); Bayesian b({}); Own c({});\n",
    ),
    "docs/extending.md 2": ("function", LOWER, ""),
    "docs/extending.md 3": ("namespace", LOWER, ""),
    "docs/extending.md 4": (
        "function",
        "const sheafnn::ModelOptions options;\nconst std::uint64_t seed = 0;\n"
        "const Eigen::Matrix3d location = Eigen::Matrix3d::Identity();\n",
        "",
    ),
    "docs/extending.md 5": ("namespace", "using Mine = sheafnn::NormalPosterior<sheafnn::Diagonal<2>>;\n", ""),
    "docs/extending.md 6": ("namespace", USING, "template class ChannelGain<float>;\n"),
    "docs/extending.md 7": ("namespace", "", "Model a({});\n"),
    "docs/extending.md 8": (
        "namespace",
        "using Maps = sheafnn::SpecialOrthogonal<3>;\nusing Posterior = sheafnn::CayleyPosterior<Maps>;\n"
        "template <sheafnn::RestrictionMapFamily F, class S> using Mine = sheafnn::layers::DiffusionLayer<F, S>;\n",
        "Model a({});\n",
    ),
    "docs/extending.md 9": (
        "namespace", USING, "static_assert(Loss<Counts, float>);\nvoid use(Nsd<Diagonal<2>>& m, const Dataset& d, const Counts& c) "
        "{ train(m, d.graph, d.features, c, d.splits[0]); (void)predict_targets(m, d.graph, d.features, c); }\n",
    ),
    "docs/extending.md 10": (
        "function",
        USING + MODEL + "const Split& split = data.splits[0];\nconst std::uint32_t epochs = 1;\nconst std::uint64_t seed = 0;\n"
        "const auto step = [](auto&, const auto&) {};\n",
        "",
    ),
    "docs/extending.md 11": ("namespace", "", ""),
    "docs/given_sheaves.md 0": ("function", LAPLACIAN, ""),
    "docs/given_sheaves.md 1": ("function", MODEL, ""),
    "docs/given_sheaves.md 2": (
        "function",
        "const sheafnn::CellularSheaf<sheafnn::GeneralLinear<2>> sheaf(sheafnn::karate_club().graph);\n"
        "const std::vector<std::int32_t> labels;\nconst sheafnn::ModelOptions options;\n",
        "",
    ),
    "docs/given_sheaves.md 3": (
        "function", MODEL + "const sheafnn::Index p = 3;\nconst std::vector<double> signs;\n", ""
    ),
    "docs/graphs.md 0": ("function", "", ""),
    "docs/index.md 0": ("function", "", ""),
    "docs/large_graphs.md 0": ("function", "", ""),
    "docs/learned_sheaf.md 0": ("function", MODEL, ""),
    "docs/learned_sheaf.md 1": ("function", LAPLACIAN, ""),
    "docs/learned_sheaf.md 2": ("function", MODEL, ""),
    "docs/learned_sheaf.md 3": (
        "function", DATA + "const sheafnn::Csnn<2> model({.features = data.feature_count(), .classes = 2});\nconst std::size_t u = 0;\n",
        "",
    ),
    "docs/networks.md 0": ("function", "", ""),
    "docs/numbers.md 0": ("function", DATA, ""),
    "docs/rotations.md 0": ("function", "", ""),
    "docs/rotations.md 1": (
        "function",
        "using Cayley = sheafnn::rotation::CayleyDistribution<3>;\nstd::vector<Cayley::Matrix> samples(100);\n",
        "",
    ),
    "docs/save_and_resume.md 0": ("function", MODEL + "const auto out_of_time = [] { return true; };\n", ""),
    "docs/save_and_resume.md 1": ("function", MODEL, ""),
    "docs/save_and_resume.md 2": ("function", MODEL, ""),
    "docs/training.md 0": ("function", DATA, ""),
    "docs/tutorials/cpp.md 0": ("excerpt", "examples/minimal.cpp", ""),
    "docs/tutorials/cpp.md 1": ("excerpt", "examples/minimal.cpp", ""),
    "docs/tutorials/cpp.md 2": ("function", "", ""),
    "docs/tutorials/rotations.md 0": ("function", "const std::vector<Eigen::Matrix3d> samples;\n", ""),
    "docs/tutorials/sheaves.md 0": ("excerpt", "examples/opinion_dynamics.cpp", ""),
    "docs/which_distribution.md 0": ("function", "const std::vector<Eigen::Matrix3d> samples;\n", ""),
}
HOST_HEADERS = """#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/bsnn/connection_model.hpp>
#include <sheafnn/bsnn/pooled_network.hpp>
#include <sheafnn/bsnn/sampled_training.hpp>
#include <sheafnn/bsnn/sheaf_use.hpp>
#include <sheafnn/bsnn/target_losses.hpp>
#include <sheafnn/convolution.hpp>
#include <sheafnn/cooperative.hpp>
#include <sheafnn/hypergraph.hpp>
#include <sheafnn/io.hpp>
#include <sheafnn/io/graph_sets.hpp>
#include <sheafnn/layers.hpp>
#include <sheafnn/links.hpp>
#include <sheafnn/rotation.hpp>
#include <sheafnn/search.hpp>
#include <sheafnn/sheaf.hpp>
#include <sheafnn/uncertainty.hpp>
#include "family_checks.hpp"
#include "posterior_checks.hpp"
"""
DEVICE_PAGES = ("docs/cuda.md", "docs/cpp/batches.md")
DEVICE_HEADERS = "#include <cstdio>\n#include <sheafnn/batch.hpp>\n#include <sheafnn/cuda.hpp>\n"


def read_blocks():
    found = {}
    pages = [path for folder in ("docs", "docs/cpp", "docs/tutorials") for path in sorted((root / folder).glob("*.md"))]
    for path in [root / "README.md", *pages]:
        text = path.read_text(encoding="utf-8")
        for i, match in enumerate(re.finditer(r"^```(?:cpp|c\+\+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
            name = f"{path.relative_to(root)} {i}"
            found[name] = (match.group(1), f"{path.relative_to(root)}:{text[:match.start()].count(chr(10)) + 2}")
    return found


def main(light, compiler, flags):
    blocks = read_blocks()
    if blocks.keys() != BLOCKS.keys():
        print(f"blocks without an entry in {pathlib.Path(__file__).name}, or entries without a block:",
              sorted(blocks.keys() ^ BLOCKS.keys()))
        return 1
    failed = 0
    units = {"host": HOST_HEADERS, "device": DEVICE_HEADERS}
    for number, (name, (kind, before, behind)) in enumerate(BLOCKS.items()):
        code, place = blocks[name]
        if kind in ("program", "excerpt"):
            example = (root / before).read_text(encoding="utf-8")
            if code != example if kind == "program" else code not in example:
                print(f"{place}: is not {'in ' if kind == 'excerpt' else ''}{before}")
                failed = 1
            continue
        for other in re.findall(r"^@(.*)$", before, re.MULTILINE):
            before = before.replace(f"@{other}\n", blocks[other][0])
        code = re.sub(r"^#include .*\n", "\n", code, flags=re.MULTILINE)
        code = re.sub(r" = …;", ";", code)
        file, line = place.rsplit(":", 1)
        lines = f'#line {line} "{file}"\n{code}#line 1 "behind {file}"\n{behind}'
        if kind == "function":
            declarations, statements = (before, "") if "template" in before else ("", before)
            template = "template <class> " if light else ""
            body = f"{declarations}{template}[[maybe_unused]] void block() {{\n{statements}{lines}}}\n"
        else:
            body = before + lines
        units["device" if file in DEVICE_PAGES else "host"] += f'#line 1 "before {file}"\nnamespace block_{number} {{\n{body}}}\n'
    with tempfile.TemporaryDirectory() as folder:
        for unit, text in units.items():
            path = pathlib.Path(folder) / f"{unit}.cpp"
            path.write_text(text, encoding="utf-8")
            more = []
            if unit == "device":
                stand_in = root / "tests" / "cuda" / "stand_in"
                more = [f"-I{stand_in}", "-D__CUDACC__", "-DEIGEN_NO_CUDA", "-include", "cuda_runtime.h"]
            command = [compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{root}/include", f"-I{root}/tests", *flags, *more, str(path)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                print("\n".join(line for line in result.stderr.splitlines() if "error" in line or "required from here" in line)[:4000])
                failed = 1
    if not failed:
        print(f"{len(BLOCKS)} blocks compile")
    return failed


if __name__ == "__main__":
    arguments = sys.argv[1:]
    light = arguments[:1] == ["--light"]
    compiler, *flags = arguments[light:] or ["g++"]
    sys.exit(main(light, compiler, flags or ["-isystem", "/usr/include/eigen3"]))
