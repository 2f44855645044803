"""Figures in the sentences of the pages: what the stored results say, and numbers that no result explains.

tables.py --check calls check(). A page of PAGES may hold a digit, or a number from two on as a word, in these places only: a table that
tables.py writes, code, a formula, a name such as SO(3), a sentence of quoted(), or a phrase of SETTINGS."""

import csv
import fractions
import io
import math
import re
import statistics
import sys

import tables
from tables import BUDGET, GRAPHS, MAPS, SEARCH, STUDIED, by_split, p_value

mean = statistics.fmean
RESULTS, UNCERTAINTY, PERFORMANCE = "docs/results/README.md", "docs/results/uncertainty/README.md", "docs/performance.md"

# Numbers that are no results: settings, sizes, versions, limits of a test.
SETTINGS = {
    "README.md": ["C++20", "80 % sector", "every edge two linear maps"],
    RESULTS: ["version 2)", "up to 32 layers", "(p < 0.05)", "seed 0", "the ten public splits", "thirty trainings per graph", "three seeds",
              "its ten splits", "three families of maps on six graphs", "With ten seeds", "ten splits", "two splits", "Ten settings of each network"],
    UNCERTAINTY: ["seeds 0 to 4 (cora: 0 and 1)", "stalk dimension 3", "p-values below 0.05", "20 draws per model", "sets are for 90 % of the labels",
                  "(32 % of the nodes)", "over ten splits", "three posterior samples", "ten splits and five seeds"],
    PERFORMANCE: ["stalk dimension 3, 4 layers, 16 channels, input dropout 0.5, dropout 0.3", "2 layers, mean degree 10", "from 10⁶ on",
                  "On two CPU cores", "three samples for BSNN", "two threads on two cores", "rotations and two layers", "A hundred models"],
    "docs/comparison.md": ["C++20", "SE(3), SE₂(3)", "beyond 3", "hundreds of other layers", "hundreds of distributions", "On two CPU cores"],
    "docs/uncertainty.md": ["for 1 − `--alpha`", "a confidence near 1", "0.10 would be no sign of a good one", "hundreds of validation nodes",
                            "two, by the agreement", "two by the agreement", "difference of these two", "[three tables]", "three kinds of conformal sets",
                            "halves the test nodes, each half"],
    "docs/when_a_sheaf_helps.md": ["seed 0", "at least 0.01 nats", "on 5000 nodes", "ten splits", "two standard errors", "trained on two splits",
                                    "row frames (1)", "[200 nodes](tutorials/python.md)"],
    "docs/accuracy.md": [
        "at 60 digits", "g++ 12", "accurate beside 1,", "near 0.", "1e±30", "above 1e19",
        "For N = 2, and for N = 3 up to ‖φ‖ = 1/ε", "sum or difference is 2π", "draws 10⁸ samples", "(León's on SO(3) and SO(5): 10⁶)",
        "up to 4096 cells", "with seed 1", "about 1/N", "below 10⁻⁶", "more than 1 GB"],
    "docs/reliability.md": [
        "up to 50 stored inputs a target and 10 000 mutations", "D to 4, to 7 layers", "K to 6", "D to 4, to 3 layers", "up to 8 convolutions",
        "6 to 59 nodes", "features 1e-10; every gradient 1e-8 of", "or 1e-3 of the largest", "at version 3, the others at version 1",
        "are of version 1.", "of version 1 or 2", "checkpoint of version 1:", "training state of version 1", "of version 1 | yes",
        "has format version 4", "versions up to 3", "versions 1 and 2", "predictions to 1e-10, resumed trainings to 1e-4", "g++ from 13 on",
        "All three must agree", "eight bases", "three inputs of the learner", "three learners with", "six activations", "two limits hold",
        "of these two kinds"],
}
PAGES = list(SETTINGS)
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
         "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
NUMBER = re.compile(rf"\d|\b(?:{'|'.join(WORDS[2:])}|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozens?|"
                    r"half|halves|twice)\b", re.IGNORECASE)
NAMES = r"arXiv \d{4}\.\d{5}|S[OE]\(\d\)|AVX-512|[A-Za-z]\w*\d\w*"


# --- Rounding ---


def up(value, digits):
    """For "at most"."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def down(value, digits):
    """For "at least"."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def span(values, digits, factor=1):
    """Smallest to largest."""
    low, high = (f"{factor * value:.{digits}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def listed(names):
    """Names, at least one, as a sentence has them."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def geometric(ratios):
    return f"{statistics.geometric_mean(ratios):.0f}"


# --- What the reports hold ---


def logged(figures, page, start):
    """Cells of the first row of a table of the notebook that begins like this."""
    lines = (figures.root / f"docs/notebook/{page}.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.strip().startswith(start))
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def rows_of(figures, page, heading):
    """Cells of all rows of tables of a section of the notebook."""
    text = (figures.root / f"docs/notebook/{page}.md").read_text(encoding="utf-8")
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL).group(1)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]


def nodes(shares):
    """Of how many nodes these are the shares that were right."""
    return math.lcm(*(fractions.Fraction(share).limit_denominator(2000).denominator for share in shares))


def validation_nodes(figures, graph):
    return nodes(figures.reports[f"{graph}-diagonal.json"]["validation_accuracy"]["per_split"])


def searched(figures, graph, one, other, rule="loss"):
    """Of the longest search: difference of the test accuracies of two networks in points, and p."""
    a, b = (by_split(figures.reports[f"search/{graph}.json"][network]["final"][rule]["test"], 2) for network in (one, other))
    return 100 * (mean(a) - mean(b)), p_value(a, b)


def by_default(figures, graph, one, other):
    """The same with default options; None where one of them was not measured on all splits."""
    found = [tables.of_defaults(figures, graph, network) for network in (one, other)]
    if None in found or min(len(of["accuracy"]) for of in found) < 10:
        return None
    a, b = (of["accuracy"] for of in found)
    return 100 * (mean(a) - mean(b)), p_value(a, b)


def compared(figures, graph, measure, ensembles=False, of=None):
    """BSNN - NSD and p, for each family of maps."""
    mine, other = ("bsnn_ensemble", "nsd_ensemble") if ensembles else ("bsnn", "nsd")
    result = []
    for name, maps, predictors in tables.families(figures):
        if name == graph and of in (None, maps):
            a, b = predictors[mine][measure], predictors[other][measure]
            result.append((mean(a) - mean(b), p_value(a, b)))
    return result


def grid(figures, graph, measure):
    """BSNN - NSD over the grid of settings, p, and the number of pairs."""
    rows = list(csv.DictReader(io.StringIO(figures.csv[f"uncertainty/sensitivity-{graph}.csv"])))
    of = {(row["model"], row["maps"], row["layers"], row["stalk-dim"], row["channels"]): float(row[measure]) for row in rows}
    a = [value for key, value in of.items() if key[0] == "bsnn"]
    b = [of["nsd", *key[1:]] for key in of if key[0] == "bsnn"]
    return mean(a) - mean(b), p_value(a, b), len(a)


def reach(figures):
    """Test accuracies of what the validation nodes choose, graphs with the same figure together."""
    graphs = {}
    for graph in sorted(SEARCH, key=["texas", "wisconsin", "cora", "citeseer", "film"].index):
        graphs.setdefault(tables.chosen(figures, graph)[0][1].split(" ")[0], []).append(graph)
    return listed([f"{value} % on {listed(names)}" for value, names in graphs.items()])


# --- Sentences, page by page ---


def speed_pages(figures):
    first, second = figures.ratios("epochs"), figures.ratios("epochs, again")
    both = first + second
    layers = figures.ratios("other networks", ("filter", "cooperative"))
    flows = figures.ratios("other networks", ("flow",))
    device = figures.ratios("gpu PyTorch", ("nsd", "bsnn"))
    filters = figures.ratios("gpu PyTorch", ("filter",))
    slower = [c["portable_ms"] / c["release_ms"] for c in figures.cells("presets")]
    largest = figures.cells("gpu large graphs")[-1]
    hundred = [c for c in figures.cells("gpu side by side") if c["models"] == 100]
    page = PERFORMANCE
    yield page, f"In two runs it was {geometric(first)} and {geometric(second)} times as fast as the authors'"
    yield page, (f"{geometric(first)} times as fast in the geometric mean ({geometric(second)} in a second run), and at least "
                 f"{min(both):.0f} times")
    for name, what in (("jax_ms", "as one compiled step of JAX"), ("pytorch_ms", "as the same arrays in PyTorch")):
        ratios = [c[name] / c["sheafnn_ms"] for c in figures.cells("anchors")]
        yield page, f"{geometric(ratios)} times as fast {what} ({min(ratios):.1f} at least)"
    others = figures.ratios("field")
    yield page, f"{geometric(others)} times as fast as these arrays in PyTorch ({min(others):.1f} at least)"
    runs = [*figures.cells("anchors, torch.compile"), *figures.cells("anchors, torch.compile, again")]
    compiled = [c["compile_ms"] / c["sheafnn_ms"] for c in runs]
    measured = len({(c["graph"], c["network"], c["maps"]) for c in runs})
    yield page, f"measured on {WORDS[measured]} cells of the table, it is {min(compiled):.0f} to {max(compiled):.0f} times as fast"
    versions = dict(part.rsplit(" ", 1) for part in figures.of["speed"]["anchors"]["versions"].split(", "))
    yield page, f"PyTorch {versions['PyTorch']}, JAX {versions['JAX']}"
    yield page, f"for filters and cooperative networks {geometric(layers)} and {min(layers):.0f}"
    yield page, f"for flows {geometric(flows)} and {min(flows):.0f}"
    sgemm = float(figures.of["speed"]["kernels"]["limits"]["sgemm"]["1 thread"].split()[0])
    yield page, f"sgemm's rate ({sgemm:.0f} GFLOP/s)"
    two = figures.of["logged"]["threads on texas"]["two threads against one"]
    twelve = [12 / 16 * float(row[3]) for row in rows_of(figures, "performance", "Numbers of channels") if row[1] == "after"]
    yield page, f"[12](notebook/performance.md) take {span(twelve, 2)} times as long as 16."
    yield page, f"On texas two are {two['nsd']} (NSD) to {two['bsnn']} times (BSNN) as fast as one"
    yield page, f"{min(slower):.1f} to {max(slower):.1f} times as long"
    on_device = {(c["graph"], c["network"], c["maps"]): c["us"] / 1000 for c in figures.cells("gpu epochs")}
    gain = {graph: [c["sheafnn_ms"] / on_device[graph, c["network"], c["maps"]] for c in figures.cells("epochs") if c["graph"] == graph]
            for graph in ("texas", "film")}
    yield page, (f"{min(gain['film']):.0f} to {max(gain['film']):.0f} times as fast as on two cores on film, and "
                 f"{min(gain['texas']):.1f} to {max(gain['texas']):.1f} times on texas")
    yield page, f"an {figures.of['speed']['gpu epochs']['machine'].replace(', ', ' with ')}"
    yield page, f"**PyTorch {figures.of['speed']['gpu PyTorch']['pytorch'].split()[1].removesuffix('.0')} on the same card.**"
    yield page, f"{geometric(filters)} times as fast for filters, in the geometric mean"
    yield page, f"For networks with rotations it is {geometric(device)} times as fast"
    yield page, (f"on {largest['edges'] // 10**7}·10⁷ edges takes {largest['epoch_ms']:.0f} ms an epoch and "
                 f"{largest['memory_gib']:g} GiB")
    yield page, f"{hundred[0]['times']:g} times one with BSNN, and {hundred[1]['times']:.1f} times with NSD"
    page = "docs/comparison.md"
    yield page, f"in two runs, [{geometric(first)} and {geometric(second)} times]"
    yield page, f"Single networks were {min(both):.0f} to {max(both):.0f} times as fast"
    memory = next(c["peak_mib"] for c in figures.cells("scaling") if c["edges"] == 10**7)
    yield page, f"holds it in memory: {memory / 1024:.0f} GiB for 10⁷ edges"
    page = "README.md"
    fiftieth = 45 <= statistics.geometric_mean(both) < 55
    yield page, "1/50 of the time" if fiftieth else f"1/{geometric(both)} of the time"
    for name, what in (("pytorch_ms", "of plain PyTorch"), ("jax_ms", "of JAX")):
        yield page, f"1/{geometric([c[name] / c['sheafnn_ms'] for c in figures.cells('anchors')])} {what}"


def readme(figures):
    coverage = next(cell for cell in logged(figures, "learned_planted_sheaves", "| `predictive` |") if cell.endswith(" %"))
    yield "README.md", f"[learned 90 % regions](docs/learned_sheaf.md#how-far-an-edge-is-trusted) hold [{coverage}]"
    number, outputs, gradients = independent(figures)
    yield "README.md", f"On [{number} random networks]"
    every = len(tables.ALL_GRAPHS)
    yield "README.md", f"On {every - len(needs_sheaf(figures))} of [{every} public graphs](docs/when_a_sheaf_helps.md), point predictions need no learned maps"
    yield "README.md", f"outputs differ by {outputs} at most from a second implementation, and gradients by {gradients}"


def independent(figures):
    """Networks, largest difference of outputs, of gradients."""
    cell = next(c for c in figures.cells("checks", "tests") if "second implementation" in c["what"])
    return cell["how much"].split()[0], *re.findall(r"[\d.]+e-\d+", cell["result"])


def needs_sheaf(figures):
    """Graphs on which every training with rotations uses them."""
    return [graph for graph in tables.ALL_GRAPHS
            if not any(tables.of_defaults(figures, graph, f"{network}-special-orthogonal")["unused"] for network in ("nsd", "bsnn"))]


def accuracy_pages(figures):
    here = {graph: [float(text.split(" ")[0]) for _, text in tables.chosen(figures, graph)] for graph in SEARCH}
    margin = f"within {max(abs(values[0] - other) for values in here.values() for other in values[1:]):.1f} points"
    ahead = f"and ahead on {listed([graph for graph, values in here.items() if max(values[1:]) > values[0]])}"
    for page, text in (("README.md", f"[learned sheaves reach](docs/results/README.md) {reach(figures)}. Networks without learned maps are"),
                       (RESULTS, f"learned sheaves reach {reach(figures)}. The identity sheaf and networks without maps are")):
        yield page, f"{text} {margin}, {ahead}. The best published figures are larger"
    page = RESULTS
    values = {graph: (figures.of["published"]["highest of a sheaf network that sheafnn has"][graph]["mean"],
                      here[graph][0] if graph in here else float(tables.minesweeper(figures).split(" ")[0])) for graph in GRAPHS}
    yield page, f"larger, except on {listed([graph for graph in GRAPHS if values[graph][0] <= values[graph][1]])}."
    mixture = figures.of["logged"]["cornell's splits with the features of texas"]["accuracy"].values()
    families = [figures.reports[f"cornell-{maps}.json"]["test_accuracy"]["mean"] for maps in MAPS]
    yield page, f"has {span(mixture, 0)}, on Cornell's own features {span(families, 0, 100)}."
    gain = []
    for seeds in ("", "-three-seeds"):
        choices = figures.reports[f"search/fifty/texas-not-tested{seeds}.json"]["texas"]["choices"]
        gain += [mean(choices[f"single, {by}, all splits"]["accuracy"]) - mean(choices[f"single, {by}, not tested"]["accuracy"])
                 for by in ("accuracy", "likelihood")]
    yield page, f"On texas this adds {span(gain, 1, 100)} points."
    paper = figures.of["logged"]["below the paper"]
    yield page, (f"Of our [{paper['means']} means](../notebook/public_graphs.md#bayesian-sheaf-networks) {paper['below']} are below the means "
                 "of the paper.")
    within = "above, or below by less than one of its standard deviations"
    yield page, f"{paper[within]} lie {within}."
    yield page, f"The {WORDS[paper['means'] - paper[within]]} on cornell are further below."
    p = authors_p(figures)
    yield page, f"none of {len(p)} differences is beyond chance (p ≥ {down(min(p), 2)},"
    yield from default_options(figures)
    ahead = {graph: beyond_chance(figures, graph) for graph in BUDGET}
    none = [graph for graph in BUDGET if not ahead[graph]]
    if none:
        yield page, f"On {listed(none)} no network is ahead of the identity sheaf beyond chance"
    for graph in BUDGET:
        if ahead[graph]:
            yield page, f"on {graph} " + listed([f"`{name}`" for name in ahead[graph]])
    counts = [validation_nodes(figures, graph) for graph in ("texas", "wisconsin")]
    yield page, f"where {listed([f'{count}' for count in counts])} validation nodes choose a setting"
    yield page, f"one node is {listed([f'{100 / count:.1f}' for count in counts])} points"
    depth, = {re.search(r"--layers (\d+)", figures.reports[f"search/{graph}.json"]["deep-bsnn"]["command"])[1] for graph in ("cora", "citeseer")}
    yield page, f"{WORDS[int(depth)].capitalize()} layers with [initial residuals]"
    deep = [searched(figures, graph, "deep-bsnn", "bsnn-diagonal") for graph in ("cora", "citeseer")]
    yield page, f"give diagonal BSNN {span([points for points, _ in deep], 1)} points (p ≤ {up(max(p for _, p in deep), 2)})"
    film = [searched(figures, "film", f"bsnn-{maps}", f"nsd-{maps}", rule) for maps in MAPS for rule in ("loss", "accuracy")]
    yield page, f"by {span([points for points, _ in film], 1)} points with all families (p ≤ {up(max(p for _, p in film), 2)})"
    yield page, f"has a lower NLL than NSD on texas, by {span([-nll for nll, _ in compared(figures, 'texas', 'nll')], 2)} ("


def default_options(figures):
    """With p < 0.05 a sentence names a difference, and p of the others is at least the bound that it states."""
    found = {(graph, network): by_default(figures, graph, network, "nsd-identity")
             for graph in tables.ALL_GRAPHS for network in ("nsd-special-orthogonal", "bsnn-special-orthogonal")}
    certain = {key: of for key, of in found.items() if of[1] < 0.05}
    graphs = {graph: [points for key, (points, _) in certain.items() if key[0] == graph] for graph, _ in certain}
    texts = [f"{graph} ({span(points, 1)}" + (" points)" if i == 0 else f"; p ≤ {up(max(p for _, p in certain.values()), 2)})")
             for i, (graph, points) in enumerate(graphs.items())]
    others = min(p for key, (_, p) in found.items() if key not in certain)
    yield RESULTS, f"Rotations are ahead of the identity sheaf on {listed(texts)}. Elsewhere no difference is beyond chance (p ≥ {down(others, 2)})."
    pairs = {(graph, maps): by_default(figures, graph, f"bsnn-{maps}", f"nsd-{maps}") for graph in tables.ALL_GRAPHS for maps in MAPS}
    certain = {key: of for key, of in pairs.items() if of and of[1] < 0.05}
    if {maps for _, maps in certain} != {"special-orthogonal"}:
        yield RESULTS, f"a sentence about BSNN, NSD and {sorted(certain)}"
    ahead, behind = ([f"{graph} ({tables.signed(points, 1)}" for (graph, _), (points, _) in certain.items() if (points > 0) == positive]
                     for positive in (True, False))
    largest = up(max(p for _, p in certain.values()), 2)
    yield RESULTS, (f"BSNN with rotations is ahead of NSD on {listed(ahead)}) and behind on {listed(behind)}; p ≤ {largest}). "
                    "Other differences are not beyond chance.")
    yield RESULTS, f"The debiased calibration error is at most {max(mean(of['debiased_ece']) for of in figures.defaults.values()):.3f}."


def authors_p(figures):
    """p between the authors' code and this library, over settings and rules that say which epoch is the best."""
    result = []
    for setting, of in figures.reports["search/authors.json"].items():
        for column, rule in ((4, "loss"), (5, "accuracy")):
            theirs = of["protocol"]["trainings"]
            if setting == "csnn minesweeper" or setting == "csnn minesweeper 900" and rule == "loss":
                continue  # one training of theirs; no trainings of ours
            result.append(p_value(by_split(theirs, column), by_split(of["ours_by"][rule]["test"], 2)))
    return result


def beyond_chance(figures, graph):
    """Networks that are ahead of the identity sheaf with p < 0.05."""
    first, *others = [(name, by_split(tables.of_budget(figures, graph, name)["final"]["loss"]["test"], 2))
                      for pair in tables.EVERY.values() for name in pair if name and tables.of_budget(figures, graph, name)]
    return [name for name, values in others if mean(values) > mean(first[1]) and p_value(values, first[1]) < 0.05]


def against_ensembles(figures, graph, measure):
    """How many NSD an ensemble has, as a word, and the share of their time that one BSNN takes, for each family of maps."""
    report = figures.reports[f"uncertainty/compare-{graph}.json"].values()
    (first, last), = {tuple(map(int, of["seeds"].split("-"))) for of in report}
    count = last - first + 1
    return WORDS[count], [of["cpu_seconds"]["bsnn"] / (count * of["cpu_seconds"]["nsd"]) for of in report]


def mean_and_p(of, measure):
    """One BSNN - an ensemble of NSD, and p."""
    return mean(of["bsnn"][measure]) - mean(of["nsd_ensemble"][measure]), p_value(of["bsnn"][measure], of["nsd_ensemble"][measure])


def uncertainty_pages(figures):
    page = UNCERTAINTY
    least = lambda found, digits=3: up(max(p for _, p in found), digits)
    sizes = lambda found, digits: span([abs(difference) for difference, _ in found], digits)
    single, several = (compared(figures, "texas", "nll", ensembles) for ensembles in (False, True))
    yield page, f"On texas a BSNN is lower by {sizes(single, 2)} with all families of maps (p ≤ {least(single)})."
    five, cost = against_ensembles(figures, "texas", "nll")
    yield page, f"Its ensembles are {sizes(several, 2)} lower than ensembles of {five} NSD at the same cost (p ≤ {least(several)})."
    (cora, p), = compared(figures, "cora", "nll")
    yield page, f"On cora a BSNN is {-cora:.3f} lower (p = {p:.3f})"
    beaten = [p_value(of["bsnn"]["nll"], of["nsd_ensemble"]["nll"]) for graph, _, of in tables.families(figures) if graph == "texas"]
    yield page, (f"**One BSNN is as good as {five} NSD** on texas within chance (p ≥ {down(min(beaten), 2)}), for {span(cost, 0, 100)} % of their time.")
    two, cost = against_ensembles(figures, "cora", "nll")
    (of_cora, (better, p)), = [(of, mean_and_p(of, "accuracy")) for graph, _, of in tables.families(figures) if graph == "cora"]
    nll = p_value(of_cora["bsnn"]["nll"], of_cora["nsd_ensemble"]["nll"])
    yield page, f"It does not differ from an ensemble of {two} NSD (p = {nll:.2f}), for {span(cost, 0, 100)} % of their time."
    yield "docs/uncertainty.md", (f"On cora an ensemble of {two} NSD is more accurate by {-100 * better:.1f} points (p = {p:.3f}), at "
                                  f"{1 / cost[0]:.1f} times the cost")
    debiased = [mean(of["debiased_ece"]) for _, _, predictors in tables.families(figures) for of in predictors.values()]
    yield page, f"No debiased calibration error differs beyond chance, and none is larger than {max(debiased):.3f}."
    rejection = compared(figures, "texas", "rejection")
    yield page, f"by {sizes(rejection, 3)} of the area under the accuracy–rejection curve (p ≤ {least(rejection)})."
    (unseen, p), = compared(figures, "cora", "unseen_entropy")
    yield page, f"detects a class that was left out worse (AUROC {tables.signed(unseen, 3)}, p = {p:.3f})."
    (_, p), = compared(figures, "texas", "set_size", of="diagonal")
    set_size = next([mean(predictors[name]["set_size"]) for name in ("bsnn", "nsd")]
                    for graph, maps, predictors in tables.families(figures) if (graph, maps) == ("texas", "diagonal"))
    yield page, f"({set_size[0]:.2f} instead of {set_size[1]:.2f} classes, p = {p:.3f})"
    nll, accuracy = ({graph: grid(figures, graph, measure) for graph in ("texas", "wisconsin")} for measure in ("nll", "accuracy"))
    yield page, f"and {nll['texas'][2]} pairs of equal settings"
    largest = max(of[graph][1] for of in (nll, accuracy) for graph in of)
    yield page, (f"NLL is lower by {-nll['texas'][0]:.3f} on texas and {-nll['wisconsin'][0]:.3f} on wisconsin, accuracy larger by "
                 f"{100 * accuracy['texas'][0]:.1f} and {100 * accuracy['wisconsin'][0]:.1f} points (p ≤ {one_digit(largest)}).")
    report = figures.reports["uncertainty/uncertainty-texas.json"]["predictions"]
    texas = {name: of["nll"]["mean"] for name, of in report.items()}
    ways = {graph: [logged(figures, "uncertainty", f"| {graph} | {name} |") for name in
                    ("single model", "single model, temperature", "single model, temperatures by neighbours", "ensemble", "ensemble, temperature")]
            for graph in ("texas", "cora")}
    changes = [abs(float(row[3]) - float(ways["cora"][first][3])) for row, first in zip(ways["cora"], (0, 0, 0, 3, 3))]
    counts = {graph: validation_nodes(figures, graph) for graph in ("texas", "cora")}
    yield page, (f"On the {counts['texas']} of texas it raises the NLL from {texas['single_model']:.2f} to {texas['single_model_temperature']:.2f}. "
                 f"On the {counts['cora']} of cora it changes the NLL by at most {max(changes):.3f}.")
    covered = [of["coverage"]["mean"] for of in report.values()]
    cora_sets = logged(figures, "uncertainty", "| cora | validation |")
    of_cora = [float(cell.split(",")[0]) for cell in cora_sets[2:]]
    yield page, f"{span(covered, 1, 100)} % instead of 90, with {counts['texas']} validation nodes that early stopping"
    yield page, f"On cora they cover {span(of_cora, 1)} %."

    page = "docs/uncertainty.md"
    single, ensemble = report["single_model"], report["ensemble"]
    yield page, (f"With the {nodes(ensemble['accuracy']['per_split'])} test nodes of texas, a perfect model scores "
                 f"{single['expected_ece']['mean']:.2f}. An ECE of {single['ece']['mean']:.2f} is no sign")
    yield page, f"has {counts['texas']} validation nodes to learn from"
    shown = re.findall(r"^(single model|ensemble) +mutual information +(\S+) +(\S+)", (figures.root / page).read_text(encoding="utf-8"), re.MULTILINE)
    one, many = ([float(number) for number in numbers] for _, *numbers in shown)
    yield page, f"Its mutual information is {span([b / a for a, b in zip(one, many)], 0)} times a single model's in the table above."
    yield page, f"On cora ({counts['cora']} nodes)"
    halves = logged(figures, "uncertainty", "| texas | test halves |")[3].split(",")[0]
    yield page, f"sets calibrated on them cover {100 * single['coverage']['mean']:.1f} % in place of 90 % on texas."
    yield page, f"It covers {float(halves):.0f} %, with larger sets."
    of_texas = logged(figures, "uncertainty", "| texas | validation |")
    (_, of_one, of_neighbours), (_, cora_one, cora_neighbours) = ([cell.split(", ") for cell in row[2:]] for row in (of_texas, cora_sets))
    yield page, (f"On cora sets shrink from {cora_one[1]} to {cora_neighbours[1]} classes at {cora_neighbours[0]} % coverage. On texas they grow "
                 f"from {of_one[1]} to {of_neighbours[1]}.")
    second = max(float(cell) for name in ("single model", "ensemble") for cell in logged(figures, "uncertainty", f"| texas, class 2: {name} |")[3:])
    left_out = figures.reports["uncertainty/compare-texas.json"]
    unseen = [mean(of["unseen_entropy"]) for family in left_out.values() for of in family["predictors"].values()]
    number = {family["left_out"] for family in left_out.values()}.pop()
    yield page, f"mutual information finds class 2 of texas best (AUROC {second:.2f}), and nothing finds class {number} ({span(unseen, 2)})."


def one_digit(value):
    """A number that is at least this one, with one digit and an exponent."""
    exponent = math.floor(math.log10(value))
    return f"{math.ceil(value / 10**exponent - 1e-9)}e{exponent}"


def test_pages(figures):
    tests = figures.cells("samplers", "tests")
    page = "docs/accuracy.md"
    yield page, f"{sum(c['tests'] for c in tests)} tests, least p {min(c['least_p'] for c in tests):g}"
    words = figures.of["logged"]["words"]
    yield page, f"PractRand {words['PractRand']}"
    yield page, f"The unusual result has p = {words['unusual p']}, and vanishes with another seed."
    yield page, (f"Of dieharder {words['dieharder']}, on {words['seeds']} neighbouring seeds, {words['passed']} results passed, {words['weak']} was weak "
                 f"(p = {words['weak p']}), none failed.")
    page = "docs/reliability.md"
    many = logged(figures, "tests", "| 64 threads on 2 processors, against 2 |")
    slower = max(float(text) for text in re.findall(r"\d\.\d\d", many[2].split(" times")[0]))
    yield page, f"64 threads on two processors take at most {slower:.2f} times as long as two."
    yield page, f"The largest difference of a gradient, {independent(figures)[2]}, is of a bias"


def sheaf_page(figures):
    page = "docs/when_a_sheaf_helps.md"
    needed, every = len(needs_sheaf(figures)), len(tables.ALL_GRAPHS)
    yield page, f"Of {WORDS[every]} public graphs {WORDS[needed]} needs it."
    yield page, f"## Public graphs: {WORDS[needed]} of {WORDS[every]}"
    yield page, f"on the other {WORDS[every - needed]} graphs"
    spread = {row[0]: re.split("/", row[2])[-1] for row in reversed(rows_of(figures, "published_posteriors", "Posteriors of the published method"))
              if row[1] == "special-orthogonal" and re.fullmatch(r"[\d./]+", row[2])}
    yield page, f"learns no sheaf on {WORDS[sum(float(kappa) < 0.05 for kappa in spread.values())]} of them either"
    behind = {row[1]: float(row[2].split(" ")[0]) - float(row[3].split(" ")[0])
              for row in rows_of(figures, "learned_planted_sheaves", "Planted sheaves: all measurements") if row[0] == "frames (1)"}
    yield page, f"On 500 nodes the learned sheaf is {behind['500']:.0f} points behind the true sheaf in three dimensions, and on 2000 nodes {behind['2000']:.0f}"
    identity = mean(tables.of_defaults(figures, "film", "nsd-identity")["accuracy"])
    gain = [mean(tables.of_defaults(figures, "film", f"{network}-special-orthogonal")["accuracy"]) - identity for network in ("nsd", "bsnn")]
    yield page, f"where they are {span(gain, 1, 100)} points behind"
    of = {(network, maps): tables.of_defaults(figures, "minesweeper", f"{network}-{maps}") for network in ("nsd", "bsnn") for maps in list(MAPS)[1:]}
    identity = tables.of_defaults(figures, "minesweeper", "nsd-identity")["accuracy"]
    costs = {maps: [mean(of[network, maps]["permuted_points"]) for network in ("nsd", "bsnn")] for maps in list(MAPS)[1:]}
    yield page, f"Permuting rotations costs {span(costs['special-orthogonal'], 1)} points, and general maps {span(costs['general-linear'], 0)}."
    ahead = [mean(a - b for a, b in zip(row["accuracy"], identity)) for row in of.values()]  # on the splits of both
    yield page, f"are {span(ahead, 1, 100)} points more accurate than with identity maps"
    row, further = (logged(figures, "learned_planted_sheaves", f"| frames ({spread}) | 91.") for spread in (0.5, 1))
    given, learned, _, without = (float(cell.split(" / ")[0]) for cell in row[1:5])
    yield page, f"the learned sheaf reaches {learned:.0f} % of the test nodes, and the true sheaf {given:.0f} %"
    yield page, f"identity maps reach {without:.0f} %, and {float(further[4].split(' / ')[0]):.0f} % where frames differ more"
    yield page, f"are {span([float(angle) for angle in re.findall(r'[0-9.]+', row[-1])], 0)} degrees from the true ones"


def quoted(figures):
    """Pages, and what must stand there, spaces and line ends apart."""
    for pages in (speed_pages, readme, accuracy_pages, uncertainty_pages, sheaf_page, test_pages):
        yield from pages(figures)


# --- The check ---


def unexplained(figures, page, phrases):
    """Lines of a page with a number that is in no phrase, without tables that tables.py writes."""
    sys.path.insert(0, str(figures.root / "docs/site"))
    import check_words

    text = (figures.root / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- table [^>]* -->.*?<!-- end of table [^>]* -->", lambda m: re.sub(r"[^\n]", "", m.group()), text, flags=re.DOTALL)
    parts = list(check_words.paragraphs(text))
    inside = check_words.code_lines(text)
    parts += [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.startswith("|") and number not in inside]
    for number, part in sorted(parts):
        part = " ".join(part.split())
        for phrase in sorted(phrases, key=len, reverse=True):
            part = part.replace(phrase, "…")
        left = re.sub(NAMES, "…", check_words.plain(part))
        if found := NUMBER.search(left):
            yield number, " ".join([*left[:found.start()].split(" ")[-5:], found.group(), *left[found.end():].split(" ")[:5]])


def check(figures):
    """Prints what is wrong; returns the number of sentences and of errors."""
    pages = {page: " ".join((figures.root / page).read_text(encoding="utf-8").split()) for page in PAGES}
    phrases = {page: list(SETTINGS[page]) for page in PAGES}
    count = bad = 0
    for page, text in quoted(figures):
        count += 1
        phrases[page].append(text)
        if text not in pages[page]:
            bad += 1
            print(f"{page}: does not say what the stored figures give: {text}")
    for page in PAGES:
        for phrase in SETTINGS[page]:
            if phrase not in pages[page]:
                bad += 1
                print(f"{page}: does not say '{phrase}', which SETTINGS of docs/results/sentences.py allows")
        for number, text in unexplained(figures, page, phrases[page]):
            bad += 1
            print(f"{page}:{number}: a number that no stored result gives: {text}")
    return count, bad
