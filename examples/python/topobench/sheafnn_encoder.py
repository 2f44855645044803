"""A backbone of TopoBench for graphs: sheaf diffusion with learned maps."""

import torch
import torch.nn.functional as F
from torch_geometric.utils import to_undirected

from sheafnn.torch import SheafConv


class SheafEncoder(torch.nn.Module):
    """Embeddings of nodes: a linear layer, ``num_layers`` sheaf convolutions with ELU between them, and a linear layer.

    :param input_dim: number of features of a node
    :param hidden_dim: number of features of an embedding; the sheaf has hidden_dim // stalk_dim channels
    :param num_layers: at least 1
    :param maps: ``"special-orthogonal"``, ``"diagonal"``, ``"general-linear"`` or ``"identity"``
    :param stalk_dim: 1 to 5
    :param dropout: of features between the layers, in [0, 1)
    :param input_dropout: of the features that come in, in [0, 1)
    :param options: of SheafConv, by name
    :raises ValueError: names the argument, its value and the limit
    """

    def __init__(self, input_dim, hidden_dim, num_layers=2, maps="special-orthogonal", stalk_dim=3, dropout=0.1,
                 input_dropout=0.1, **options):
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers: {num_layers} is not allowed; must be at least 1")
        if hidden_dim < stalk_dim:
            raise ValueError(f"hidden_dim: {hidden_dim} is not allowed; must be at least {stalk_dim}, the stalk dimension")
        coordinates = stalk_dim + bool(options.get("add_lp")) + bool(options.get("add_hp"))
        width = max(1, hidden_dim // coordinates) * coordinates
        self.out_channels = hidden_dim
        self.dropout, self.input_dropout = dropout, input_dropout
        self.first = torch.nn.Linear(input_dim, width)
        self.convolutions = torch.nn.ModuleList(SheafConv(width, width, maps, stalk_dim, **options) for _ in range(num_layers))
        self.last = torch.nn.Linear(width, hidden_dim)

    def forward(self, x, edge_index, edge_attr=None, edge_weight=None, batch=None, **kwargs):
        """
        :param x: n x input_dim
        :param edge_index: 2 x m; missing directions of edges are added
        :param edge_attr, edge_weight, batch, kwargs: not read; the layers learn weights of edges, and graphs of a batch
            share no edge
        :returns: n x hidden_dim
        """
        edge_index = to_undirected(edge_index, num_nodes=x.shape[0])
        x = F.elu(self.first(F.dropout(x, self.input_dropout, self.training)))
        for convolution in self.convolutions:
            x = F.elu(convolution(F.dropout(x, self.dropout, self.training), edge_index))
        return self.last(x)
