"""Ranks that are threads of one process: their sums and gradients need no network."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from sf.ranks.ranks import Ranks

PATIENCE_S = 60.0


class ThreadRanks(Ranks):
    """One of them. They must do the same calls in the same order."""

    def __init__(self, rank, messages, barrier):
        self.rank, self.size = rank, len(messages)
        self.has_called = threading.Event()
        self._messages, self._barrier = messages, barrier

    @torch.no_grad()
    def totals(self, *sums):
        self._messages[self.rank] = [each.detach().clone() for each in sums]
        self.has_called.set()
        self._barrier.wait(PATIENCE_S)
        totals = [torch.stack(parts).sum(0) for parts in zip(*self._messages, strict=True)]
        self._barrier.wait(PATIENCE_S)
        return totals

    def joined(self, network):
        for parameter in network.parameters():
            (of_first,) = self.totals(parameter if self.rank == 0 else torch.zeros_like(parameter))
            parameter.data.copy_(of_first)
            if parameter.requires_grad:
                parameter.register_hook(lambda gradient: self.totals(gradient)[0] / self.size)
        return network


def each_rank(size, body):
    """What `body` returns for each of these ranks. One begins when that before it calls for the first time, since they
    draw the weights of their networks from the same random numbers."""
    messages, barrier = [[] for _ in range(size)], threading.Barrier(size)
    ranks = [ThreadRanks(rank, messages, barrier) for rank in range(size)]

    def one(rank):
        if rank > 0:
            assert ranks[rank - 1].has_called.wait(PATIENCE_S)
        try:
            return body(ranks[rank])
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(one, range(size)))
