"""All probes, in the order in which they are tried."""

from __future__ import annotations

from sf.check.probe import Probe

_PYTHON = "install them as docs/installation.md says, in a virtual environment of their own"
_ON_CPU = "train on the CPU meanwhile (--device cpu)"

PROBES = (
    Probe("versions", "sf.check.software:versions", _PYTHON, with_torch=True, limit_s=90.0),
    Probe("shared memory", "sf.check.kernel:shared_memory", "memfd_create is needed: Linux 3.17, or another sandbox"),
    Probe(
        "free memory",
        "sf.check.kernel:free_memory",
        "end other programs, raise the limit of the container, or train with few --num_workers (recipes/low_memory.md)",
        matters=False,
    ),
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
    Probe("cores", "sf.check.kernel:pinning", "train with --set_workers_cpu_affinity false", matters=False),
    Probe(
        "time of the cores",
        "sf.check.kernel:cpu_quota",
        "raise the quota of the container, or set --num_workers to the cores that are granted",
        matters=False,
    ),
    Probe(
        "freed memory",
        "sf.check.kernel:kept_memory",
        "without it, training on the CPU is up to a third slower",
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
        "locks",
        "sf.check.disk:locking",
        "make sure that no run is started twice, or name another --train_dir",
        matters=False,
    ),
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
        "change the flags; if the environment is at fault, mend it",
        of_run=True,
        with_torch=True,
        limit_s=120.0,
    ),
    Probe(
        "compiled loops",
        "sf.check.gpu:compiled_loops",
        "nothing: networks on the CPU are only slower",
        matters=False,
        with_torch=True,
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
        "GPU after a fork",
        "sf.check.gpu:after_fork",
        f"nothing that torch imports may touch CUDA: look for plugins of your own; {_ON_CPU}",
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "GPU itself",
        "sf.check.gpu:facts",
        f"end what uses its memory (nvidia-smi), or install a torch with kernels for it; {_ON_CPU}",
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
    Probe(
        "page-locked shared memory",
        "sf.check.gpu:page_locking",
        "nothing: the host copies large observations for the policy workers instead, which takes time of a core",
        matters=False,
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "streams and events",
        "sf.check.gpu:streams",
        "raise the limit of locked memory (ulimit -l unlimited; docker run --ulimit memlock=-1), or update the driver; "
        f"{_ON_CPU}",
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "other GPUs",
        "sf.check.gpu:peers",
        "nothing, for one policy; with several, let the run see one GPU (CUDA_VISIBLE_DEVICES=0)",
        matters=False,
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "convolutions",
        "sf.check.gpu_numbers:convolution",
        f"update the driver, or torch; {_ON_CPU}",
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "float32 without TF32",
        "sf.check.gpu_numbers:float32",
        "unset NVIDIA_TF32_OVERRIDE and TORCH_ALLOW_TF32_CUBLAS_OVERRIDE; until then --precision float32 is less exact",
        matters=False,
        on_gpu=True,
        limit_s=60.0,
    ),
    Probe(
        "CUDA MPS",
        "sf.check.software:mps",
        "it may be faster with it: nvidia-cuda-mps-control -d before the run (docs/recipes/gpus.md)",
        matters=False,
        on_gpu=True,
    ),
)
