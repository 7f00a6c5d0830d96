"""How ranks find each other in the store of `torchrun`, which still has what earlier ranks have left in it."""

from __future__ import annotations

import time
import uuid

from torch.distributed import PrefixStore, Store

_LOOKS_EVERY_S = 0.05


def meet(store: Store, rank: int, size: int) -> Store:
    """A part of the store for these ranks alone; waits until all have come.

    After a failure torchrun starts all ranks again with the same store. No variable that it sets tells one start from
    the next on every machine. So each rank comes with a new name, and the first answers each name that it finds with
    the one name of all: an answer to an earlier rank is never read.
    """
    if rank == 0:
        name = _receive(store, size)
    else:
        own = uuid.uuid4().hex
        store.set(f"sf/came/{rank}", own)
        name = store.get(f"sf/answer/{own}").decode()  # waits for it
        store.set(f"sf/met/{name}/{rank}", "")
    return PrefixStore(f"sf/{name}", store)


def _receive(store: Store, size: int) -> str:
    name = uuid.uuid4().hex
    missing = set(range(1, size))
    while missing:
        for rank in sorted(missing):
            if store.check([f"sf/met/{name}/{rank}"]):
                missing.remove(rank)
            elif store.check([f"sf/came/{rank}"]):
                store.set(f"sf/answer/{store.get(f'sf/came/{rank}').decode()}", name)
        if missing:
            time.sleep(_LOOKS_EVERY_S)
    return name
