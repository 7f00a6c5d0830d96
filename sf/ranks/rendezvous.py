"""How the ranks of a run find each other in the store of `torchrun`, and what they make sure of before they begin."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch.distributed import PrefixStore, Store, TCPStore

from sf.config import Config
from sf.envs.errors import UsageError
from sf.ranks.place import Place
from sf.storage import text_files
from sf.storage.run_dir import write_atomically

_LOOKS_EVERY_S = 0.05
_COME_WITHIN_S = 300.0  # as long as the store waits for an answer
_PATIENCE = timedelta(seconds=60)  # with ranks that look at their flags
_MAY_DIFFER = {  # between machines
    "train_dir",
    "trust",
    "num_learners",
    "num_workers",
    "num_envs_per_worker",
    "set_workers_cpu_affinity",
    "learner_threads",
    "queues",
}


_hosted: dict[tuple[str, int], TCPStore] = {}  # by this process


@dataclass(frozen=True)
class Rendezvous:
    """store: of the ranks that have met, alone; at the first rank it lives as long as this. sees_disk_of_first: whether
    the run directory is that of rank 0.
    """

    store: Store
    name: str
    sees_disk_of_first: bool


@dataclass(frozen=True)
class SavedRun:
    """Says what there is of a run at its start.

    env_steps: of each policy, those of the newest checkpoint; None: there is none. run_id: it had from its beginning;
    None: there is no run, or an older one. where: its machine and directory, in words.
    """

    env_steps: Sequence[int | None]
    run_id: str | None = None
    where: str = ""


def new_run_id() -> str:
    return uuid.uuid4().hex


def connect(place: Place, is_parent: bool = False) -> Store:
    """The store of `torchrun`, or of the part of it where these ranks have met.

    Where torchrun has none for its workers, the parent of the first rank is the host of one, as long as it lives.
    """
    is_host = is_parent and place.is_first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = _hosted.get((address, port)) or TCPStore(address, port, is_master=is_host, wait_for_workers=False)
    if is_host:
        _hosted[address, port] = store
    return PrefixStore(f"sf/{place.rendezvous}", store) if place.rendezvous else store


def meet(place: Place, config: Config, resolved: Mapping[str, Any], folder: Path) -> Rendezvous:
    """Waits until all ranks have come.

    config: as the user has it. resolved: what this machine makes of flags that are auto, and that has to be the same
    on all. folder: for what ranks write, in the directory of all runs. Raises UsageError where a rank was started with
    other flags than the first, or does not come.
    """
    path = folder / "rendezvous"
    own = json.dumps({**config.flat(), **resolved}, default=str)
    try:
        shared = connect(place, is_parent=True)
        name = name_of_rendezvous(shared, place.rank, place.size)
        store = PrefixStore(f"sf/{name}", shared)
        if place.is_first:
            _write(path, name)
            store.set("flags", own)
        _require_same_flags(place.rank, json.loads(own), json.loads(store.get("flags")))
        sees_disk = path.is_file() and not path.is_symlink() and path.read_text(errors="replace") == name
        _wait_for_all(store, place)
    except RuntimeError as error:  # of the store
        raise UsageError(f"the ranks cannot meet at {os.environ['MASTER_ADDR']}: {error}".partition("\n")[0]) from None
    return Rendezvous(store, name, sees_disk)


def name_of_rendezvous(store: Store, rank: int, size: int) -> str:
    """One name for all ranks that are there now, in a store that still has what earlier ranks have left in it.

    After a failure torchrun starts all ranks again with the same store. No variable that it sets tells one start from
    the next on every machine. So each rank comes with a new name, and the first answers each name that it finds with
    the one name of all: an answer to an earlier rank is never read.
    """
    if rank == 0:
        return _receive(store, size)
    own = uuid.uuid4().hex
    store.set(f"sf/came/{rank}", own)
    name = store.get(f"sf/answer/{own}").decode()  # waits for it
    store.set(f"sf/met/{name}/{rank}", "")
    return name


def most_saved(store: Store, place: Place, own: SavedRun) -> SavedRun:
    """Returns the newest of what the ranks have, and the id of the run. Raises UsageError where the runs differ."""
    keys = [f"saved/{rank}" for rank in range(place.size)]
    word = {"run_id": own.run_id, "env_steps": list(own.env_steps), "new_id": new_run_id(), "where": own.where}
    store.set(keys[place.rank], json.dumps(word))
    of_ranks = [json.loads(store.get(key)) for key in keys]
    known = [(rank, each) for rank, each in enumerate(of_ranks) if each["run_id"] is not None]
    for rank, each in known:
        first_rank, first = known[0]
        if each["run_id"] != first["run_id"]:
            raise UsageError(
                f"rank {rank} has another run in {each['where']} than rank {first_rank} in {first['where']}: move away "
                "the one that you do not want to continue, or name another --experiment"
            )
    of_policies = zip(*(each["env_steps"] for each in of_ranks), strict=True)
    found = [[steps for steps in of_policy if steps is not None] for of_policy in of_policies]
    return SavedRun(
        [max(each, default=None) for each in found], known[0][1]["run_id"] if known else of_ranks[0]["new_id"]
    )


def _receive(store: Store, size: int) -> str:
    name = uuid.uuid4().hex
    missing = set(range(1, size))
    give_up_at = time.monotonic() + _COME_WITHIN_S
    while missing:
        if time.monotonic() > give_up_at:
            raise UsageError(f"rank {min(missing)} did not connect within {_COME_WITHIN_S:.0f} s: look at its output")
        for rank in sorted(missing):
            if store.check([f"sf/met/{name}/{rank}"]):
                missing.remove(rank)
            elif store.check([f"sf/came/{rank}"]):
                store.set(f"sf/answer/{store.get(f'sf/came/{rank}').decode()}", name)
        if missing:
            time.sleep(_LOOKS_EVERY_S)
    return name


def _write(path: Path, name: str) -> None:
    """Raises UsageError."""
    try:
        text_files.require_file(path)
        write_atomically(path, name.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error}): name another --train_dir") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _require_same_flags(rank: int, own: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    differ = [name for name in own if name not in _MAY_DIFFER and own[name] != first.get(name)]
    if differ:
        name = differ[0]
        raise UsageError(
            f"{name} is {own[name]} at rank {rank}, and {first.get(name)} at rank 0: give all ranks the same flags"
        )


def _wait_for_all(store: Store, place: Place) -> None:
    """Nobody begins without one that has found other flags. Raises UsageError."""
    ready = [f"ready/{rank}" for rank in range(place.size)]
    store.set(ready[place.rank], "")
    try:
        store.wait(ready, _PATIENCE)
    except RuntimeError:
        missing = ", ".join(str(rank) for rank, key in enumerate(ready) if not store.check([key]))
        raise UsageError(f"rank {missing} did not connect: look at its output") from None
