"""Data-parallel training under ``torchrun``: each process takes its share of a batch, gradients are summed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """This process among all that train together; alone it does nothing."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and reports."""
        return self.rank == 0

    def share(self, size: int) -> np.ndarray:
        """Positions of a batch of ``size`` that this process works on."""
        return np.arange(self.rank, size, self.count)

    def sum_gradients(self, parameters: list[torch.nn.Parameter]) -> None:
        """Replace every gradient by the sum over all processes; sparse ones stay sparse."""
        if self.count == 1:
            return
        for parameter in parameters:
            present = torch.tensor(
                [parameter.grad is not None, bool(parameter.grad is not None and parameter.grad.is_sparse)]
            )
            present = present.to(parameter.device, torch.int32)
            dist.all_reduce(present, dist.ReduceOp.MAX)
            if not present[0]:
                continue
            if present[1]:
                parameter.grad = self._sum_rows(parameter)
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def _sum_rows(self, parameter: torch.nn.Parameter) -> Tensor:
        device = parameter.device
        if parameter.grad is None:
            rows = torch.empty(0, dtype=torch.long, device=device)
            values = parameter.new_empty(0, parameter.shape[1])
        else:
            grad = parameter.grad.coalesce()
            rows, values = grad.indices()[0], grad.values()
        size = torch.tensor([len(rows)], device=device)
        sizes = [torch.zeros_like(size) for _ in range(self.count)]
        dist.all_gather(sizes, size)
        longest = int(max(int(s) for s in sizes))
        padded_rows = torch.zeros(longest, dtype=torch.long, device=device)
        padded_values = torch.zeros(longest, parameter.shape[1], dtype=parameter.dtype, device=device)
        padded_rows[: len(rows)], padded_values[: len(rows)] = rows, values
        all_rows = [torch.empty_like(padded_rows) for _ in range(self.count)]
        all_values = [torch.empty_like(padded_values) for _ in range(self.count)]
        dist.all_gather(all_rows, padded_rows)
        dist.all_gather(all_values, padded_values)
        rows = torch.cat([r[: int(s)] for r, s in zip(all_rows, sizes, strict=True)])
        values = torch.cat([v[: int(s)] for v, s in zip(all_values, sizes, strict=True)])
        return torch.sparse_coo_tensor(rows[None], values, parameter.shape).coalesce()

    def agree(self, value: float) -> float:
        """The first process' value, in all of them."""
        return self._exchange(value, lambda shared: dist.broadcast(shared, 0))

    def total(self, value: float) -> float:
        """The sum of a number over all processes."""
        return self._exchange(value, dist.all_reduce)

    def _exchange(self, value: float, operation: Callable[[torch.Tensor], object]) -> float:
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        if dist.get_backend() == "nccl":
            shared = shared.cuda()
        operation(shared)
        return float(shared)


def join() -> Processes:
    """This process' place; under ``torchrun`` it joins the others (gloo on CPU, nccl on GPU)."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Processes()
    if not dist.is_initialized():
        on_gpu = torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("nccl" if on_gpu else "gloo")
    return Processes(dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Leave the group of processes, if there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
