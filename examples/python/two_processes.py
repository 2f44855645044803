#!/usr/bin/env python3
"""Two processes that train one model (DistributedDataParallel, gloo), and one process that does the same alone.

Each of two processes has every other graph of a batch; their mean gradient is the gradient of the whole batch. The table
has the losses and the largest difference of a gradient, and the program fails where it exceeds 1e-12.

Where a model has dropout or draws its sheaves, give its layers no seed, and each process a number of its own:
torch.manual_seed(rank). With a seed all processes draw the same noise.
"""

import os
import sys
import tempfile

import torch
import torch.distributed
import torch.multiprocessing
import torch.nn.functional as F
from torch_geometric.data import Batch

from graphs import options, print_table, rings
from many_graphs import Network

PROCESSES = 2


def batches(seed, steps, rank=0, processes=1):
    """For each step the graphs of a process."""
    return [Batch.from_data_list(rings(8, seed + step, torch.float64)[rank::processes]) for step in range(steps)]


def train(model, parts):
    """Loss and gradients of every step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = []
    for batch in parts:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), batch.y)
        loss.backward()
        steps.append((loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]))
        optimizer.step()
    return steps


def network(seed):
    torch.manual_seed(seed)
    return Network(2, 12, 2, dtype=torch.float64)


def work(rank, folder, seed, steps):
    """What each process does; the first one writes what it has found."""
    torch.set_num_threads(1)
    store = f"file://{os.path.join(folder, 'store')}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=PROCESSES)
    model = torch.nn.parallel.DistributedDataParallel(network(seed))
    found = train(model, batches(seed, steps, rank, PROCESSES))
    for loss, _ in found:
        torch.distributed.all_reduce(loss)
        loss /= PROCESSES
    if rank == 0:
        torch.save(found, os.path.join(folder, "found.pt"))
    torch.distributed.destroy_process_group()


def main():
    arguments = options(__doc__, epochs=5, data=False).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (folder, arguments.seed, arguments.epochs), nprocs=PROCESSES)
        together = torch.load(os.path.join(folder, "found.pt"))
    alone = train(network(arguments.seed), batches(arguments.seed, arguments.epochs))
    rows, worst = [], 0.0
    for step, ((loss, gradients), (their_loss, their_gradients)) in enumerate(zip(alone, together)):
        difference = max(float((a - b).abs().max()) for a, b in zip(gradients, their_gradients))
        size = max(float(a.abs().max()) for a in gradients)
        rows.append([step, f"{loss:.12f}", f"{their_loss:.12f}", f"{size:.3f}", f"{difference:.1e}"])
        worst = max(worst, difference)
    print_table(["step", "loss, one process", "loss, two processes", "largest gradient", "difference"], rows)
    return 0 if worst <= 1e-12 else 1


if __name__ == "__main__":
    sys.exit(main())
