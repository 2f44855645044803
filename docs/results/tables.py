#!/usr/bin/env python3
"""Writes the tables of the pages about speed, accuracy and tests from stored figures, or checks them.

usage: tables.py [--check] [ROOT]

A page marks the place of a table by the lines "<!-- table NAME -->" and "<!-- end of table NAME -->". The figures stand in
docs/results/figures/*.json, docs/results/defaults.json and docs/results/reports.tar.xz. With --check nothing is written; the program fails
where a page differs. Both ways it fails where sentences.py finds a sentence with another figure, or a number that no result explains."""

import json
import math
import pathlib
import re
import statistics
import sys
import tarfile

NETWORKS = [(network, maps) for network in ("nsd", "bsnn") for maps in ("diagonal", "special-orthogonal", "general-linear")]
MAPS = {"diagonal": "diagonal", "special-orthogonal": "rotations", "general-linear": "general"}
MODELS = {"nsd": "NSD", "bsnn": "BSNN"}
GRAPHS = ["texas", "wisconsin", "film", "cora", "citeseer", "minesweeper"]
ALL_GRAPHS = ["texas", "wisconsin", "cornell", "film", "cora", "citeseer", "minesweeper"]
SEARCH = {"texas": "fifty", "wisconsin": "fifty", "film": "ten", "cora": "ten", "citeseer": "ten"}
STUDIED = ["texas", "wisconsin", "cora"]
NAMES = {"gprgnn": "GPRGNN", "h2gcn": "H2GCN", "gcnii": "GCNII"}
# Of one budget: graphs, and the deterministic and the Bayesian network of each kind.
BUDGET = ["texas", "wisconsin", "cornell"]
EVERY = {"identity sheaf": ("identity", None), "diffusion": ("nsd", "bsnn"),
         **{kind: (f"nsd-{kind}", f"bsnn-{kind}") for kind in ("convolution", "wave", "attention", "copresheaf", "directed")},
         "cooperative": ("csnn", "bcsnn"), "continuous time": ("flow", "bflow"), "connection": ("conn-nsd", "bconn-nsd"),
         "bundles": ("bunn", "bbunn")}


class Figures:
    """The stored figures, by file."""

    def __init__(self, root):
        self.root = root
        folder = root / "docs/results"
        self.of = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "figures").glob("*.json"))}
        self.defaults = json.loads((folder / "defaults.json").read_text(encoding="utf-8"))
        self.spaces = json.loads((root / "benchmarks/search_spaces.json").read_text(encoding="utf-8"))
        wanted = {f"search/{SEARCH[g]}/{g}.json" for g in SEARCH} | {"search/authors.json", "minesweeper-csnn-2000.json"}
        wanted |= {f"search/budget/{name}.json" for name in [*BUDGET, "planted-frames", "hypergraph"]}
        wanted |= {f"uncertainty/compare-{graph}.json" for graph in STUDIED} | {"uncertainty/uncertainty-texas.json"}
        wanted |= {f"search/{graph}.json" for graph in ("film", "cora", "citeseer")}
        wanted |= {f"{graph}-diagonal.json" for graph in STUDIED} | {f"cornell-{maps}.json" for maps in MAPS}
        wanted |= {f"search/fifty/texas-not-tested{seeds}.json" for seeds in ("", "-three-seeds")}
        tables = {f"uncertainty/sensitivity-{graph}.csv" for graph in ("texas", "wisconsin")}
        self.reports, self.csv = {}, {}
        with tarfile.open(folder / "reports.tar.xz") as archive:
            for member in archive:
                if member.name in wanted:
                    self.reports[member.name] = json.load(archive.extractfile(member))
                elif member.name in tables:
                    self.csv[member.name] = archive.extractfile(member).read().decode()

    def cells(self, name, file="speed"):
        return self.of[file][name]["cells"]

    def ratios(self, name, networks=None):
        """How many times faster than PyTorch, cell by cell."""
        cells = [c for c in self.cells(name) if networks is None or c["network"] in networks]
        return [c["pytorch_ms"] / c["sheafnn_ms"] for c in cells]


def short(value):
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(head, rows, texts=1):
    """The first columns, as many as `texts`, are texts, and numbers follow."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * texts + ["---:"] * (len(head) - texts)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows]) + "\n"


# --- Speed ---


def anchors(figures):
    rows = []
    for c, ratio in zip(figures.cells("anchors"), figures.ratios("epochs"), strict=True):
        times = [text for name in ("jax_ms", "pytorch_ms") for text in (short(c[name]), f"{c[name] / c['sheafnn_ms']:.1f}")]
        rows.append([c["graph"], MODELS[c["network"]], MAPS[c["maps"]], short(c["sheafnn_ms"]), *times, f"{ratio:.0f}"])
    head = ["graph", "network", "maps", "sheafnn, ms", "JAX, ms", "times", "PyTorch, ms", "times", "authors' code, times"]
    return table(head, rows, texts=3)


def field(figures):
    """A row for each graph and network, deterministic and Bayesian."""
    rows = {}
    for c in figures.cells("field"):
        times = [short(c["sheafnn_ms"]), short(c["pytorch_ms"]), f"{c['pytorch_ms'] / c['sheafnn_ms']:.1f}"]
        rows.setdefault((c["graph"], c["network"]), []).extend(times)
    head = ["graph", "network", "ms", "PyTorch, ms", "times", "Bayesian, ms", "PyTorch, ms", "times"]
    return table(head, [[*key, *times] for key, times in rows.items()], texts=2)


def gpu_epochs(figures):
    time = {(c["graph"], c["network"], c["maps"]): c["us"] for c in figures.cells("gpu epochs")}
    head = ["size of"] + [f"{MODELS[n]}, {MAPS[m]}" for n, m in NETWORKS]
    return table(head, [[g] + [short(time[g, n, m]) for n, m in NETWORKS] for g in ("texas", "cora", "film")])


def kernels(figures):
    rows = []
    for c in figures.cells("kernels"):
        of = {"special-orthogonal": "rotations", "general-linear": "general maps", "diagonal": "diagonal maps"}.get(c["of"], c["of"])
        of = of.replace("n d x f x f", "features × weights")
        rows.append([f"{c['kernel']}, {of}", short(c["us"]), short(c["gflops"]), short(c["gbs"]), f"{c['roofline_percent']:.0f} %"])
    return table(["kernel", "µs", "GFLOP/s", "GB/s", "of the limit"], rows)


def scaling(figures):
    rows = [[f"{c['edges']:,}".replace(",", " "), short(c["step_ms"]), short(c["step_ms_2_threads"]), str(c["peak_mib"])]
            for c in figures.cells("scaling")]
    return table(["edges", "step, ms", "step with two threads, ms", "peak memory, MiB"], rows)


# --- Accuracy on public graphs ---


def percent(values, deviation=statistics.stdev):
    return f"{100 * statistics.fmean(values):.1f} ± {100 * deviation(values):.1f}"


def published(figures, graph, whose):
    of = figures.of["published"][whose].get(graph)
    return f"{of['mean']:.1f} ± {of['std']:.1f}" if of else "–"


def authors(figures, graph):
    """NSD in its authors' code: thirty trainings, each in the epoch with the least validation loss."""
    of = figures.reports["search/authors.json"].get(f"nsd {graph}")
    return percent([training[4] for training in of["protocol"]["trainings"]]) if of else "–"


def chosen(figures, graph):
    """Of networks with learned maps, of identity sheaves, of networks without maps: the one that the validation nodes choose, and its
    test accuracy."""
    maps = {name: of["fixed"].get("--maps") for name, of in figures.spaces["networks"].items()}
    identity = [name for name in maps if maps[name] == "identity"]
    networks = figures.reports[f"search/{SEARCH[graph]}/{graph}.json"]
    result = []
    for names in ([n for n in maps if n not in identity], identity, list(figures.spaces["baselines"])):
        of = {name: networks[name] for name in names if name in networks}
        best = max(of, key=lambda name: (round(of[name]["validation"], 9), -of[name]["validation_loss"]))
        result.append((best, percent([value for _, _, value in of[best]["final"]["loss"]["test"]])))
    return result


def by_split(trainings, column):
    """Means over the seeds."""
    splits = sorted({training[0] for training in trainings})
    return [statistics.fmean(training[column] for training in trainings if training[0] == split) for split in splits]


def minesweeper(figures):
    """ROC AUC of ten splits."""
    values = [split["roc_auc"] for report in figures.reports["minesweeper-csnn-2000.json"] for split in report["splits"]]
    return percent(values, statistics.pstdev)


def public(figures):
    best = "highest of a sheaf network that sheafnn has"
    rows = []
    for graph in GRAPHS:
        here = [text for _, text in chosen(figures, graph)] if graph in SEARCH else [minesweeper(figures), "–", "–"]
        rows.append([graph, published(figures, graph, best), published(figures, graph, "nsd"), authors(figures, graph), *here])
    head = ["graph", "published, best", "published, NSD", "NSD authors' code", "this library", "identity sheaf", "without maps"]
    return table(head, rows)


def networks(figures):
    rows = []
    for graph in SEARCH:
        names = [NAMES.get(name, f"`{name}`") for name, _ in chosen(figures, graph)]
        rows.append([graph, *names, {"fifty": "50", "ten": "10"}[SEARCH[graph]]])
    return table(["graph", "this library", "identity sheaf", "without maps", "settings tried of each network"], rows, texts=4)


def of_budget(figures, graph, network):
    """What a search of ten settings chose, with its test figures; None where there is no such network."""
    return figures.reports[f"search/budget/{graph}.json"].get(network)


def test_of(of):
    """Test accuracies of the chosen setting: a split and a seed each."""
    return [value for _, _, value in of["final"]["loss"]["test"]]


def every_network(figures):
    rows = []
    for kind, pair in EVERY.items():
        found = [of_budget(figures, graph, network) for graph in BUDGET for network in pair]
        rows.append([kind] + [percent(test_of(of)) if of else "–" for of in found])
    return table(["network"] + [head for graph in BUDGET for head in (graph, f"{graph}, Bayesian")], rows)


def budget_rows(figures, graph, networks):
    """Of every network: validation, test, test minus the first network's, p, NLL, calibration error, time."""
    rows = []
    first = by_split(of_budget(figures, graph, networks[0])["final"]["loss"]["test"], 2)
    for network in networks:
        of = of_budget(figures, graph, network)
        if of is None:
            continue
        final = of["final"]["loss"]
        values = by_split(final["test"], 2)
        against = [signed(100 * (statistics.fmean(values) - statistics.fmean(first)), 1), f"{p_value(values, first):.2g}"]
        rows.append([graph, f"`{network}`", f"{100 * of['validation']:.1f}", percent(test_of(of)),
                     *(["", ""] if network == networks[0] else against), f"{final['nll']:.3f}", f"{final['ece']:.3f}",
                     short(final["ms_per_epoch"])])
    return rows


def budget_table(figures, graphs, networks, first):
    head = ["graph", "network", "validation", "test", f"minus {first}", "p", "NLL", "ECE", "ms per epoch"]
    return table(head, [row for graph in graphs for row in budget_rows(figures, graph, networks)], texts=2)


def one_budget(figures):
    return budget_table(figures, BUDGET, [name for pair in EVERY.values() for name in pair if name], "identity")


def given_sheaf(figures):
    names = list(figures.reports["search/budget/planted-frames.json"])
    return budget_table(figures, ["planted-frames"], names, names[0])


def hypergraphs(figures):
    names = list(figures.reports["search/budget/hypergraph.json"])
    return budget_table(figures, ["hypergraph"], names, names[0])


def of_defaults(figures, graph, network):
    return next((of for key, of in figures.defaults.items() if key.split()[:2] == [graph, network]), None)


def accuracy(of):
    return percent(of["accuracy"]) if of else "–"


def defaults(figures):
    head = ["graph"] + [f"{MODELS[n]}, {MAPS[m]}" for n, m in NETWORKS[3:] + NETWORKS[:3]] + ["identity sheaf"]
    rows = []
    for graph in ALL_GRAPHS:
        names = [f"{n}-{m}" for n, m in NETWORKS[3:] + NETWORKS[:3]] + ["nsd-identity"]
        few = [len(of["accuracy"]) < 10 if (of := of_defaults(figures, graph, name)) else False for name in names]
        rows.append([graph] + [accuracy(of_defaults(figures, graph, n)) + ("*" if f else "") for n, f in zip(names, few)])
    return table(head, rows)


def sheaves(figures):
    """What permuting the learned maps between edges costs."""
    def part(graph, network):
        of = of_defaults(figures, graph, network)
        count = len(of["accuracy"])
        return [signed(statistics.fmean(of["permuted_points"]), 1), f"{count - of['unused']} of {count}"]

    rows = []
    for graph in ALL_GRAPHS:
        cells = [accuracy(of_defaults(figures, graph, "nsd-identity")), accuracy(of_defaults(figures, graph, "nsd-special-orthogonal"))]
        for network in ("nsd-special-orthogonal", "bsnn-special-orthogonal", "nsd-general-linear"):
            cells += part(graph, network)
        rows.append([graph, *cells])
    head = ["graph", "accuracy, identity maps", "accuracy, rotations", "rotations: points", "used", "Bayesian rotations: points", "used",
            "general maps: points", "used"]
    return table(head, rows)


# --- Sets of graphs ---

SET_NETWORKS = {"gin": "GIN", "gcn": "GCN", "nsd-identity": "identity sheaf"}
SET_NETWORKS |= {f"{n}-{m}": f"{MODELS[n]}, {MAPS[m]}" for n, m in NETWORKS if m != "general-linear"}


def graph_accuracy(figures):
    """Mean and deviation over test folds, and the number of folds."""
    rows = []
    for network, name in SET_NETWORKS.items():
        cells = [name]
        for of in figures.of["graphs"]["accuracy"].values():
            values = of[network]["accuracy"] if network in of else []
            cells += [percent(values, statistics.pstdev), str(len(values))] if values else ["–", "–"]
        rows.append(cells)
    return table(["network"] + [cell for name in figures.of["graphs"]["accuracy"] for cell in (name, "folds")], rows)


def graph_epochs(figures):
    """Milliseconds, and how many times as fast as GIN and as the same network in PyTorch."""
    rows = []
    sets = figures.of["graphs"]["speed"]
    for network, name in SET_NETWORKS.items():
        cells = [name]
        for of in sets.values():
            ms, torch = of[network]["ms"], of.get(f"torch-{network}")
            cells += [short(ms), f"{of['gin']['ms'] / ms:.1f}"]
            cells += [short(torch["ms"]), f"{torch['ms'] / ms:.1f}"] if torch else ["–", "–"]
        rows.append(cells)
    heads = ("{}, ms", "GIN's time / its time", "in PyTorch, ms", "times")
    return table(["network"] + [head.format(name) for name in sets for head in heads], rows)


def sampled_steps(figures):
    of = figures.of["sampled"]["ms"]
    names = {"sage": "GraphSAGE", "gcn": "GCN", "nsd": "NSD, rotations", "bsnn": "BSNN, rotations"}
    rows = [[name, short(statistics.median(of[network])), f"{statistics.median(a / b for a, b in zip(of['sage'], of[network])):.2f}"]
            for network, name in names.items()]
    return table(["network", "ms", "GraphSAGE's time / its time"], rows)


LINK_SCORES = {"energy": "energy", "energy, residual maps": "residual", "energy, residual maps, columns": "both",
               "dot": "dot", "dot, columns": "columns", "bilinear": "bilinear", "bilinear, columns": "columns"}


def link_scores(figures):
    """Mean test ROC AUCs over the seeds."""
    rows = [[f"`{dataset}`", *(f"{statistics.fmean(of[score]['test_roc_auc']):.3f}" for score in LINK_SCORES)]
            for dataset, of in figures.of["links"]["datasets"].items()]
    return table(["`--dataset`", *LINK_SCORES.values()], rows)


# --- Uncertainty ---


def families(figures):
    """Graph, maps and results of every comparison of BSNN and NSD."""
    for graph in STUDIED:
        for maps, of in figures.reports[f"uncertainty/compare-{graph}.json"].items():
            yield graph, MAPS[maps], of["predictors"]


def spread(values, digits, factor=1.0):
    return f"{factor * statistics.fmean(values):.{digits}f} ± {factor * statistics.pstdev(values):.{digits}f}".replace("-", "−")


def uncertainty(figures):
    rows = []
    for graph, maps, predictors in families(figures):
        for key, of in predictors.items():
            name = key.replace("_", " ").replace("nsd", "NSD").replace("bsnn", "BSNN")
            rows.append([graph, maps, name, str(of["members"]), spread(of["accuracy"], 1, 100), spread(of["nll"], 3),
                         spread(of["debiased_ece"], 3), spread(of["rejection"], 3), spread(of["set_size"], 2)])
    head = ["graph", "maps", "prediction", "members", "accuracy", "NLL", "debiased ECE", "rejection", "set size"]
    return table(head, rows, texts=3)


def differences(figures):
    """BSNN - NSD, single models and ensembles, with p."""
    rows = []
    for graph, maps, predictors in families(figures):
        for name, mine, other in (("single", "bsnn", "nsd"), ("ensembles", "bsnn_ensemble", "nsd_ensemble")):
            cells = [graph, maps, name]
            for key, digits, factor in (("accuracy", 1, 100), ("nll", 3, 1), ("rejection", 3, 1)):
                a, b = predictors[mine][key], predictors[other][key]
                cells += [signed(factor * (statistics.fmean(a) - statistics.fmean(b)), digits), f"{p_value(a, b):.3f}"]
            rows.append(cells)
    return table(["graph", "maps", "compared", "accuracy", "p", "NLL", "p", "rejection", "p"], rows, texts=3)


def signed(value, digits):
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


WAYS = [("accuracy", 1, 100), ("nll", 3, 1), ("debiased_ece", 3, 1), ("rejection", 3, 1), ("coverage", 1, 100), ("set_size", 2, 1)]


def ways(figures):
    """Ways to predict on texas: means over the seeds, then over the splits."""
    report = figures.reports["uncertainty/uncertainty-texas.json"]
    rows = []
    for key, of in report["predictions"].items():
        cells = [key.replace("_", " ").replace("model t", "model, t").replace("ensemble t", "ensemble, t")]
        for measure, digits, factor in WAYS:
            values = of[measure]["per_split"]
            if len(values) == len(report["trainings"]):
                splits = sorted({training["split"] for training in report["trainings"]})
                values = [statistics.fmean(v for v, t in zip(values, report["trainings"]) if t["split"] == split) for split in splits]
            cells.append(spread(values, digits, factor))
        rows.append(cells)
    return table(["prediction", "accuracy", "NLL", "debiased ECE", "rejection", "coverage", "set size"], rows)


# --- Errors of functions, and tests ---


def error_text(value):
    return f"{value:.1e}" if value >= 1e5 else f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def functions(name):
    """The table of one group of functions: largest errors."""
    def make(figures):
        kinds = ["float", "double", "float-pack", "double-pack"]
        group = figures.of["functions"][name]
        kinds = [kind for kind in kinds if any(kind in row["errors"] for row in group)]
        rows = []
        for row in group:
            cells = [row["function"], row["range"], row["unit"]]
            for kind in kinds:
                error = row["errors"].get(kind)
                bad = f", {error[3]} not finite" if error and error[3:] else ""
                cells.append("–" if error is None else error_text(error[0]) + bad)
            rows.append([cell.replace("|", "\\|") for cell in cells])
        return table(["function", "range", "unit"] + [kind.replace("-pack", ", pack") for kind in kinds], rows, texts=3)
    return make


def groups_of_functions(figures):
    """Of each group of functions: how many there are, medians and maxima of the largest errors."""
    rows = []
    for name in FUNCTIONS:
        group = figures.of["functions"][name]
        errors = {kind: [row["errors"][k][0] for row in group for k in (kind, f"{kind}-pack") if row["errors"].get(k)]
                  for kind in ("float", "double")}
        rows.append([name, str(len(group)), *(error_text(of(errors[kind])) for kind in errors for of in (statistics.median, max))])
    return table(["group", "functions and ranges", "float, median", "float, at most", "double, median", "double, at most"], rows)


def power(count):
    exponent = round(math.log10(count))
    digits = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if 10**exponent == count else f"{count / 10**int(math.log10(count)):g} · 10⁷"


def samplers(figures):
    rows = [[c["sampler"], power(c["draws"]), str(c["tests"]), f"{c['least_p']:g}"] for c in figures.cells("samplers", "tests")]
    return table(["sampler", "draws", "tests", "least p"], rows)


def words(figures):
    rows = [[c["words"], c["size"], str(c["results"]), c["unusual"]] for c in figures.cells("words", "tests")]
    return table(["words", "size", "results", "unusual or worse"], rows)


def runs(name, head):
    """The table of one group of tests."""
    def make(figures):
        return table(head, [[c["what"], c["how much"], c["result"]] for c in figures.cells(name, "tests")], texts=3)
    return make


FUNCTIONS = ["Packs: elementary functions", "Random numbers", "Parts of networks", "Normalised Laplacian: S of a node",
             "Rotations from parameters, and back", "Nearest rotation", "Cayley and wrapped Cauchy distributions", "Matrix Fisher distributions",
             "Isotropic Gaussian distributions on SO(3)", "Matrix Bingham distributions",
             "León's distributions, angular central Gaussian distributions, angles of uniform rotations", "Mixtures of two distributions"]
TABLES = {
    "docs/performance.md": {"anchors": anchors, "field": field, "kernels": kernels, "scaling": scaling, "gpu epochs": gpu_epochs},
    "docs/results/README.md": {"public graphs": public, "networks": networks, "every network": every_network, "defaults": defaults},
    "docs/notebook/one_budget.md": {"one budget": one_budget, "given sheaf": given_sheaf, "hypergraphs": hypergraphs},
    "docs/results/uncertainty/README.md": {"uncertainty": uncertainty, "differences": differences, "ways": ways},
    "docs/when_a_sheaf_helps.md": {"sheaves": sheaves},
    "docs/graphs.md": {"graph accuracy": graph_accuracy, "graph epochs": graph_epochs},
    "docs/edges.md": {"link scores": link_scores},
    "docs/large_graphs.md": {"sampled steps": sampled_steps},
    "docs/accuracy.md": {"functions": groups_of_functions, "samplers": samplers, "words": words},
    "docs/notebook/function_errors.md": {f"functions: {name}": functions(name) for name in FUNCTIONS},
    "docs/reliability.md": {"checks": runs("checks", ["what is run", "how much", "result"]),
                            "faults": runs("faults", ["what fails", "how often", "result"])},
}


def p_value(a, b):
    """Wilcoxon's signed-rank test, exact: over all signs of the differences, equal ones with their mean rank."""
    differences = [round(x - y, 9) for x, y in zip(a, b) if round(x - y, 9)]
    sizes = sorted(abs(d) for d in differences)
    doubled = [2 * sizes.index(abs(d)) + sizes.count(abs(d)) + 1 for d in differences]  # twice the rank
    distance = abs(sum(int(math.copysign(rank, d)) for rank, d in zip(doubled, differences)))
    width = len(doubled) // 8 + 1  # bytes of a count
    subsets = 1  # in digits of so many bytes: how many sets of positive differences have the sum of ranks 0, 1, 2, …
    for rank in doubled:
        subsets += subsets << 8 * width * rank
    total = sum(doubled)
    digits = subsets.to_bytes(width * (total + 1), "little")
    extreme = sum(int.from_bytes(digits[width * s:width * (s + 1)], "little") for s in range(total + 1) if abs(2 * s - total) >= distance)
    return extreme / 2**len(doubled)


def main():
    words_of_line = sys.argv[1:]
    check = "--check" in words_of_line
    folders = [word for word in words_of_line if word != "--check"]
    if len(folders) > 1 or any(word.startswith("-") for word in folders):
        sys.exit(__doc__)
    root = pathlib.Path(folders[0]) if folders else pathlib.Path(__file__).resolve().parents[2]
    figures = Figures(root)
    bad = count = 0
    for name, makers in TABLES.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        for table_name, make in makers.items():
            begin, end = f"<!-- table {table_name} -->\n", f"<!-- end of table {table_name} -->\n"
            if text.count(begin) != 1 or text.count(end) != 1:
                sys.exit(f"tables.py: {name}: no place for the table '{table_name}'")
            head, rest = text.split(begin)
            there, tail = rest.split(end)
            made = "\n" + make(figures) + "\n"
            count += 1
            if there != made:
                bad += check
                if check:
                    print(f"{name}: the table '{table_name}' differs from the stored figures; run docs/results/tables.py")
            text = head + begin + made + end + tail
        unknown = re.findall(r"<!-- table ([^>]*) -->", text)
        for extra in set(unknown) - set(makers):
            sys.exit(f"tables.py: {name}: no such table: '{extra}'")
        if not check:
            path.write_text(text, encoding="utf-8")
    import sentences  # which imports this file

    quotes, wrong = sentences.check(figures)
    bad += wrong
    print(f"{count} tables, {quotes} figures in sentences, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
