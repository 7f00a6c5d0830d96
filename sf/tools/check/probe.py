"""The probes: what each is told of the run, its outcome, and all of them in the order in which they are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sf.config import Config
    from sf.envs.custom.given import GivenEnv


Status = Literal["ok", "FAILS", "note", "skipped"]


@dataclass(frozen=True)
class Needs:
    """The demands of a run with these flags on the machine."""

    train_dir: str
    device: str  # auto, cpu or cuda
    num_workers: int
    num_envs: int
    num_policies: int
    num_policy_workers: int  # of all policies
    num_slots: int  # of one agent an environment
    config: Config | None = None  # where the flags name an environment or a preset
    given_env: GivenEnv | None = None  # where that environment was given as an object


@dataclass(frozen=True)
class Probe:
    """A row of the table.

    function: "module:function". Only the process that calls it imports it, so the table can be read without torch. It
    takes `Needs`, or with `on_gpu` the device and a pipe to each partner. It returns its finding, and raises ProbeError
    or any other exception where something is wrong.

    advice: what to do then, in one sentence or a few. matters: training depends on it; else a failure is only worth a
    note. partners: "module:function" of processes beside it, each of which gets its end of the pipe.
    """

    name: str
    function: str
    advice: str
    matters: bool = True
    on_gpu: bool = False
    of_run: bool = False  # skipped where the flags name none
    with_torch: bool = False
    partners: tuple[str, ...] = ()
    limit_s: float = 30.0
    takes: str = ""  # how long, if it is worth saying before


class ProbeError(Exception):
    """Its message says what was expected and what came instead."""


@dataclass(frozen=True)
class Outcome:
    name: str
    status: Status
    text: str  # what was found
    advice: str = ""  # what to do about it, where something is wrong
    seconds: float = 0.0


_PYTHON = "install them as docs/installation.md says, in a virtual environment of their own"
_ON_CPU = "train on the CPU meanwhile (--device cpu)"

PROBES = (
    Probe("versions", "sf.tools.check.machine:versions", _PYTHON, with_torch=True, limit_s=90.0),
    Probe(
        "shared memory",
        "sf.tools.check.machine:shared_memory",
        "memfd_create is needed: Linux 3.17, or another sandbox",
    ),
    Probe(
        "file descriptors",
        "sf.tools.check.machine:descriptors",
        "raise the hard limit (ulimit -Hn), or lower --num_workers",
    ),
    Probe(
        "pipes",
        "sf.tools.check.machine:pipes",
        "raise fs.pipe-user-pages-soft with sysctl (0: no limit), or lower --num_workers and --num_envs_per_worker",
    ),
    Probe(
        "death signal",
        "sf.tools.check.machine:death_signal",
        "prctl(PR_SET_PDEATHSIG) is needed, and some sandboxes lack it: a run that is killed leaves processes then",
    ),
    Probe(
        "time of the cores",
        "sf.tools.check.machine:cpu_quota",
        "raise the quota of the container, or set --num_workers to the cores that are granted",
        matters=False,
    ),
    Probe(
        "bfloat16 on the CPU",
        "sf.tools.check.gpu:bfloat16_on_cpu",
        "nothing: it is only slower",
        matters=False,
        with_torch=True,
    ),
    Probe("train_dir", "sf.tools.check.machine:writing", "name another --train_dir, or make room there"),
    Probe(
        "/dev/shm",
        "sf.tools.check.machine:shm",
        "Doom needs it: free some, or give it more (docker run --shm-size)",
        matters=False,
    ),
    Probe(
        "Doom",
        "sf.tools.check.environments:doom",
        "see 'A Doom engine does not start' in docs/troubleshooting.md; everything else trains without it",
        limit_s=60.0,
    ),
    Probe(
        "Atari",
        "sf.tools.check.environments:atari",
        "reinstall ale-py; everything else trains without it",
        limit_s=60.0,
    ),
    Probe(
        "run",
        "sf.tools.check.environments:plan",
        "change the flags; if the environment is at fault, fix it",
        of_run=True,
        with_torch=True,
        limit_s=120.0,
    ),
    Probe(
        "compiled networks",
        "sf.tools.check.programs:compiled",
        "nothing: the run is only slower",
        matters=False,
        of_run=True,
        with_torch=True,
        limit_s=600.0,
        takes="half a minute of a core or more for each",
    ),
    Probe(
        "GPU",
        "sf.tools.check.gpu:seen",
        "install a CUDA build of torch that the driver knows (docs/installation.md), start the container with the GPU, "
        "or take --device cpu",
        with_torch=True,
        limit_s=60.0,
    ),
    Probe(
        "GPU itself",
        "sf.tools.check.gpu:facts",
        "end what uses its memory (nvidia-smi), install a torch with kernels for it, or look for plugins of your own "
        f"that touch CUDA when torch is imported; {_ON_CPU}",
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "GPU memory between processes",
        "sf.tools.check.gpu:shared",
        "CUDA IPC is needed: unset PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF, and do without MIG, WSL and "
        f"sandboxes such as gVisor; {_ON_CPU}",
        on_gpu=True,
        partners=("sf.tools.check.gpu:map_and_answer", "sf.tools.check.gpu:map_and_answer"),
        limit_s=90.0,
    ),
)
