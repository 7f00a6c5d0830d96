"""All probes, in the order in which they are tried."""

from __future__ import annotations

from sf.check.probe import Probe

_PYTHON = "install them as docs/installation.md says, in a virtual environment of their own"
_ON_CPU = "train on the CPU meanwhile (--device cpu)"

PROBES = (
    Probe("versions", "sf.check.software:versions", _PYTHON, with_torch=True, limit_s=90.0),
    Probe("shared memory", "sf.check.kernel:shared_memory", "memfd_create is needed: Linux 3.17, or another sandbox"),
    Probe(
        "file descriptors", "sf.check.kernel:descriptors", "raise the hard limit (ulimit -Hn), or lower --num_workers"
    ),
    Probe(
        "pipes",
        "sf.check.kernel:pipes",
        "raise fs.pipe-user-pages-soft with sysctl (0: no limit), or lower --num_workers and --num_envs_per_worker",
    ),
    Probe(
        "death signal",
        "sf.check.kernel:death_signal",
        "prctl(PR_SET_PDEATHSIG) is needed, and some sandboxes lack it: a run that is killed leaves processes then",
    ),
    Probe(
        "time of the cores",
        "sf.check.kernel:cpu_quota",
        "raise the quota of the container, or set --num_workers to the cores that are granted",
        matters=False,
    ),
    Probe(
        "bfloat16 on the CPU",
        "sf.check.gpu:bfloat16_on_cpu",
        "nothing: it is only slower",
        matters=False,
        with_torch=True,
    ),
    Probe("train_dir", "sf.check.disk:writing", "name another --train_dir, or make room there"),
    Probe(
        "/dev/shm",
        "sf.check.disk:shm",
        "Doom needs it: free some, or give it more (docker run --shm-size)",
        matters=False,
    ),
    Probe(
        "Doom",
        "sf.check.simulators:doom",
        "see 'A Doom engine does not start' in docs/troubleshooting.md; everything else trains without it",
        limit_s=60.0,
    ),
    Probe("Atari", "sf.check.simulators:atari", "reinstall ale-py; everything else trains without it", limit_s=60.0),
    Probe(
        "run",
        "sf.check.named_run:plan",
        "change the flags; if the environment is at fault, fix it",
        of_run=True,
        with_torch=True,
        limit_s=120.0,
    ),
    Probe(
        "GPU",
        "sf.check.gpu:seen",
        "install a CUDA build of torch that the driver knows (docs/installation.md), start the container with the GPU, "
        "or take --device cpu",
        with_torch=True,
        limit_s=60.0,
    ),
    Probe(
        "GPU itself",
        "sf.check.gpu:facts",
        "end what uses its memory (nvidia-smi), install a torch with kernels for it, or look for plugins of your own "
        f"that touch CUDA when torch is imported; {_ON_CPU}",
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "GPU memory between processes",
        "sf.check.gpu_memory:shared",
        "CUDA IPC is needed: unset PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF, and do without MIG, WSL and "
        f"sandboxes such as gVisor; {_ON_CPU}",
        on_gpu=True,
        partners=("sf.check.gpu_memory:map_and_answer", "sf.check.gpu_memory:map_and_answer"),
        limit_s=90.0,
    ),
)
