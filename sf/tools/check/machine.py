"""Probes of versions, Linux and the disk: packages, shared memory, descriptors, pipes, signals, cores, files."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import platform
import resource
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

from sf.shared.queues import PipeQueue
from sf.storage.run_dir import write_atomically
from sf.system.arrays import Field, SharedArrays
from sf.system.machine import cores as machine_cores
from sf.system.processes.creator import die_with_creator
from sf.system.processes.fork_servers import descriptors_needed
from sf.tools.check.probe import Needs, ProbeError

_SHOWN = ("torch", "numpy", "gymnasium", "vizdoom", "ale-py")
_DRIVER = Path("/proc/driver/nvidia/version")
_SHARED_BYTES = 64 << 20
_DEATH_WITHIN_MS = 5000.0
_PIPE_LIMITS = Path("/proc/sys/fs")
_SHM = Path("/dev/shm")
_ENOUGH_ON_DISK = 1 << 30
_ENGINE_BYTES = 128 << 10  # of /dev/shm, a Doom engine


def versions(needs: Needs) -> str:
    """Checks that the packages that this one asks for are installed, and can be imported."""
    torch = importlib.import_module("torch")
    wrong = [line for requirement in _requirements() if (line := _complaint(requirement))]
    if wrong:
        raise ProbeError("; ".join(wrong))
    for module in ("gymnasium", "vizdoom", "ale_py"):
        importlib.import_module(module)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "a build without CUDA"
    shown = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _SHOWN)
    return f"Python {platform.python_version()}, {shown}; torch is for {build}; {_driver()}"


def _requirements() -> list[Requirement]:
    """The requirements of the package without extras; none where the package is not installed."""
    try:
        lines = importlib.metadata.requires("sf-appo") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    requirements = [Requirement(line) for line in lines]
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]


def _complaint(requirement: Requirement) -> str | None:
    try:
        found = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"{requirement.name} is {found}, and {requirement.specifier} is asked for"


def _driver() -> str:
    words = _text(_DRIVER).partition("\n")[0].split()
    version = next((word for word in words if word[0].isdigit() and "." in word), None)
    return f"NVIDIA driver {version}" if version else "no NVIDIA driver"


def shared_memory(needs: Needs) -> str:
    """Two processes that map a memfd each see what the other writes."""
    arrays = SharedArrays([Field("bytes", (_SHARED_BYTES,), np.uint8)])
    ours = arrays["bytes"]
    ours[-1] = 1
    child = os.fork()
    if child == 0:
        theirs = SharedArrays([Field("bytes", (_SHARED_BYTES,), np.uint8)], os.dup(arrays._fd))["bytes"]
        seen = int(theirs[-1])
        theirs[0] = 2
        os._exit(seen)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if (status, int(ours[0])) != (1, 2):
        raise ProbeError(f"a child saw {status} instead of 1, its parent {ours[0]} instead of 2")
    return f"{_SHARED_BYTES >> 20} MiB without a name, the same in two processes"


def descriptors(needs: Needs) -> str:
    wanted = descriptors_needed(needs.num_workers, needs.num_policy_workers)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise ProbeError(f"{needs.num_workers} workers need about {wanted}, and the hard limit is {hard}")
    limits = " and ".join("endless" if limit == resource.RLIM_INFINITY else str(limit) for limit in (soft, hard))
    return f"{needs.num_workers} workers need about {wanted}; soft and hard limit are {limits}"


def pipes(needs: Needs) -> str:
    """The queues of a run can be made, as large as they have to be."""
    capacities = [2 * needs.num_slots] * needs.num_policies
    capacities += [2 * math.ceil(needs.num_slots / needs.num_workers)] * needs.num_workers
    capacities += [1024] * needs.num_policy_workers
    limits = ", ".join(f"{name} {_text(_PIPE_LIMITS / name)}" for name in ("pipe-max-size", "pipe-user-pages-soft"))
    try:
        queues = [PipeQueue(capacity) for capacity in capacities]
    except (OSError, ValueError) as error:
        raise ProbeError(
            f"{len(capacities)} pipes for a run of {needs.num_workers} workers: {error} ({limits})"
        ) from None
    for queue, capacity in zip(queues, capacities, strict=True):
        queue.put_many(range(capacity))
        if queue.get_many(1) != [0]:
            raise ProbeError("a pipe gave back what was not put in first")
    return f"{len(capacities)}, the largest for {max(capacities)} messages ({limits})"


def death_signal(needs: Needs) -> str:
    """A process is killed with its parent where it asks for that (PR_SET_PDEATHSIG), so nothing outlives a run."""
    alive, grandchild_end = os.pipe()
    ready, ready_end = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.close(alive)
            die_with_creator()
            os.write(ready_end, str(os.getpid()).encode())
            signal.pause()
            os._exit(0)
        signal.pause()
        os._exit(0)
    os.close(grandchild_end)  # now only the two hold it: it ends when both are gone
    grandchild = int(os.read(ready, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    poll = select.poll()
    poll.register(alive, select.POLLIN)
    if not poll.poll(_DEATH_WITHIN_MS):
        with suppress(ProcessLookupError):
            os.kill(grandchild, signal.SIGKILL)
        raise ProbeError("a process outlived its parent, though it had asked the kernel to be killed with it")
    return "a process dies with its parent"


def cpu_quota(needs: Needs) -> str:
    """A cgroup may grant less CPU time than its number of cores suggests."""
    cores = len(os.sched_getaffinity(0))
    granted = machine_cores.cpu_quota()
    if granted is not None and granted < cores:
        raise ProbeError(f"{cores} cores are there, and the time of {granted:g} is granted")
    return f"all the time of {cores} cores"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return "unknown"


def writing(needs: Needs) -> str:
    """A file is replaced at once, as the trainer replaces checkpoints and summaries."""
    with _folder(needs.train_dir) as folder:
        path = folder / "checkpoint"
        for text in (b"old", b"new"):
            write_atomically(path, text)
            if path.read_bytes() != text:
                raise ProbeError(f"{folder.parent} gives back other bytes than were written")
        free = shutil.disk_usage(folder).free
        if free < _ENOUGH_ON_DISK:
            raise ProbeError(f"{folder.parent} has {free / 2**30:.1f} GiB left")
        return f"{folder.parent}: files are replaced whole, {free / 2**30:.0f} GiB are free"


def shm(needs: Needs) -> str:
    """Room for ViZDoom's shared memory. The trainer's own has no name, and so takes none of it."""
    usage = shutil.disk_usage(_SHM)
    wanted = _ENGINE_BYTES * needs.num_envs
    if usage.free < wanted:
        raise ProbeError(f"{usage.free >> 10} KiB are free, and {needs.num_envs} Doom engines take {wanted >> 10}")
    with tempfile.TemporaryFile(dir=_SHM) as file:
        file.write(bytes(min(wanted, 1 << 20)))
        file.flush()
    return f"{usage.free / 2**20:,.0f} of {usage.total / 2**20:,.0f} MiB are free"


@contextmanager
def _folder(train_dir: str) -> Iterator[Path]:
    """A folder for a moment: in train_dir, or where that would be made."""
    place = Path(train_dir).absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise ProbeError(f"{place} cannot be written")
    with tempfile.TemporaryDirectory(prefix=".sf-check-", dir=place) as folder:
        yield Path(folder)
