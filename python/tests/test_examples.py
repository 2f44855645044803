"""The programs of examples/python run, and print the tables that they promise."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import sheafnn.torch  # noqa: E402

folder = pathlib.Path(__file__).parents[2] / "examples" / "python"


def run(program, *arguments):
    """The lines that a program prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    words = [sys.executable, folder / program, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def table(lines, first):
    """The rows of the table whose head begins with this word, by their first column."""
    (begin,) = [i for i, line in enumerate(lines) if line.startswith(first + "  ")]
    rows = [re.split(r"  +", line.strip()) for line in lines[begin + 1 :]]
    return {row[0]: row[1:] for row in rows if len(row) == len(re.split(r"  +", lines[begin].strip()))}


def loaded(path):
    """A module by the path of its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_node_classification():
    rows = table(run("node_classification.py", "--epochs", 25), "convolution")
    assert set(rows) == {"GCNConv", "SheafConv", "BayesianSheafConv"}
    for name in ("SheafConv", "BayesianSheafConv"):
        assert float(rows[name][2]) > 60, rows  # four classes


def test_node_classification_of_a_file(tmp_path):
    path = tmp_path / "graph.npz"
    graph = sheafnn.synthetic(nodes=60, classes=3, features=12, words=4, splits=1, seed=2)
    masks = np.zeros((3, 1, 60), bool)
    for mask, nodes in zip(masks, graph.splits[0]):
        mask[0, nodes] = True
    np.savez(path, node_features=graph.features.toarray(), node_labels=graph.codes, edges=graph.edges,
             train_masks=masks[0], val_masks=masks[1], test_masks=masks[2])
    lines = run("node_classification.py", "--data", path, "--epochs", 2, "--hidden", 6)
    assert lines[0] == f"60 nodes, {graph.edge_count} edges, 12 features"


def test_mini_batches():
    import torch_geometric.typing

    lines = run("mini_batches.py", "--epochs", 8)
    rows = table(lines, "loader")
    sampler = torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE
    assert set(rows) == {"full graph", "RandomNodeLoader", "ClusterLoader", *(["NeighborLoader"] if sampler else [])}
    assert sampler or lines[0].startswith("NeighborLoader is left out, and ClusterLoader does without METIS")
    for name, (batches, nodes, _, _, test) in rows.items():
        assert int(batches) == 1 if name == "full graph" else int(batches) > 1
        assert int(nodes) == 600 if name == "full graph" else int(nodes) < 600
        assert float(test) > 50, rows  # four classes


def test_many_graphs():
    lines = run("many_graphs.py", "--graphs", 240, "--epochs", 10)
    rows = table(lines, "epoch")
    assert float(rows["10"][0]) < float(rows["2"][0])
    assert float(re.fullmatch(r"test accuracy of epoch \d+: (.*) %", lines[-1]).group(1)) > 85


def test_gradients_of_two_processes_are_equal():
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("PyTorch is built without gloo")
    rows = table(run("two_processes.py", "--epochs", 3), "step")
    assert list(rows) == ["0", "1", "2"]
    for loss, of_two, size, difference in rows.values():
        assert abs(float(loss) - float(of_two)) <= 1e-12
        assert float(size) > 1e-3 and float(difference) <= 1e-12


def test_a_batch_of_graphs_is_its_graphs():
    from torch_geometric.data import Batch

    sys.path.insert(0, str(folder))
    try:
        graphs = loaded(folder / "graphs.py").rings(5, 1, torch.float64)
        network = loaded(folder / "many_graphs.py").Network(2, 12, 3, dtype=torch.float64, seed=1)
    finally:
        sys.path.remove(str(folder))
    with torch.no_grad():
        together = network(Batch.from_data_list(graphs))
        alone = torch.cat([network(Batch.from_data_list([graph])) for graph in graphs])
    assert (together - alone).abs().max() <= 1e-13 * alone.abs().max()


def test_the_forward_pass_of_the_page_is_nsd():
    page = (folder.parents[1] / "docs" / "from_nsd_code.md").read_text(encoding="utf-8")
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Own" in b]
    names = {}
    exec(compile(block, "block", "exec"), names)
    own = names["Own"](5, 4).double().eval()
    network = sheafnn.torch.Nsd(5, 4, "special-orthogonal", 3, feature_treatment="none", layers=2, dtype=torch.float64).eval()
    weights = {}
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight += 0.2 * torch.randn(weight.shape, dtype=weight.dtype)
            part, _, rest = name.partition(".")
            number = rest.partition(".")[0]
            weights[{"lin1": f"encoder.{rest}", "lin2": f"readout.{rest}", "sheaf": f"learners.{number}.sheaf.0.weight",
                     "edge": f"learners.{number}.edge.0.weight"}.get(part, f"layers.{number}.{part}")] = weight
        own.load_state_dict(weights)
        x = torch.randn(3, 5, dtype=torch.float64)
        torch.testing.assert_close(own(x, names["edge_index"]), network(x, names["edge_index"]), rtol=0, atol=1e-12)


class _Wrapper(torch.nn.Module):
    """Calls a backbone as GNNWrapper of TopoBench does, whose sources document the interface."""

    def __init__(self, backbone, out_channels):
        super().__init__()
        self.backbone, self.norm = backbone, torch.nn.LayerNorm(out_channels)

    def forward(self, batch):
        x = self.backbone(batch.x_0, batch.edge_index, batch=batch.batch_0, edge_weight=batch.get("edge_weight", None))
        return {"labels": batch.y, "batch_0": batch.batch_0, "x_0": self.norm(x + batch.x_0)}


def test_backbone_of_topobench():
    from torch_geometric.data import Data

    encoder = loaded(folder / "topobench" / "sheafnn_encoder.py").SheafEncoder
    backbone = encoder(8, 8, num_layers=2, stalk_dim=3, dropout=0.5, input_dropout=0.1)
    assert backbone.out_channels == 8 and "backbone" in repr(_Wrapper(backbone, 8))
    batch = Data(x_0=torch.randn(5, 8), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 0, 4]]), y=torch.zeros(5),
                 batch_0=torch.tensor([0, 0, 0, 1, 1]))
    out = _Wrapper(backbone, 8)(batch)
    assert out["x_0"].shape == (5, 8)
    out["x_0"].square().sum().backward()
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    with pytest.raises(ValueError, match="hidden_dim: 2 is not allowed; must be at least 3, the stalk dimension"):
        encoder(8, 2)
    with pytest.raises(ValueError, match="num_layers: 0 is not allowed; must be at least 1"):
        encoder(8, 8, num_layers=0)


def test_configuration_of_topobench():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = folder / "topobench" / "configs" / "model" / "graph" / "sheafnn.yaml"
    settings = yaml.safe_load(path.read_text())["backbone"]
    module, name = settings.pop("_target_").split(".")
    width = 48
    numbers = {key: width if isinstance(value, str) and value.startswith("${") else value for key, value in settings.items()}
    backbone = getattr(loaded(folder / "topobench" / f"{module}.py"), name)(**numbers)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert backbone(torch.randn(2, width), edge_index).shape == (2, width)
