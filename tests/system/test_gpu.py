"""`sf.system.gpu`: that it is the only one to call CUDA, with the graphs behind it, and that its stand-in has what it
has."""

import ast
import inspect
import sys

import pytest
import warm
from late import environment, late_gpu
from pages import ROOT

from sf.system import cuda_graph, gpu


def public(module):
    own = {module.__name__, cuda_graph.__name__}
    return {
        name: thing
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) in own
    }


def parameters(function):
    return list(inspect.signature(function).parameters)


def test_the_late_gpu_has_the_same_functions():
    real, late = public(gpu), public(late_gpu())
    assert real.keys() == late.keys()
    for name, thing in real.items():
        assert parameters(thing) == parameters(late[name]) or isinstance(thing, type)
        if isinstance(thing, type):
            methods = {m for m in vars(thing) if not m.startswith("_")}
            assert methods == {m for m in vars(late[name]) if not m.startswith("_")}
            for method in methods:
                assert parameters(getattr(thing, method)) == parameters(getattr(late[name], method))


def test_no_other_module_calls_cuda():
    calls = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
        for path in (ROOT / "sf").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "cuda" and ast.unparse(node) == "torch.cuda"
    ]
    asks_what_no_run_asks = "sf/tools/check/gpu.py"
    assert {call.partition(":")[0] for call in calls} == {
        "sf/system/gpu.py",
        "sf/system/cuda_graph.py",
        asks_what_no_run_asks,
    }


def test_what_is_called_float32_keeps_its_digits_and_only_fixed_shapes_are_timed():
    code = (
        "import torch; from sf.system.processes.torch_runtime import configure\n"
        "for is_fixed in (True, False):\n"
        "    configure('cpu', 1, deterministic=False, has_fixed_shapes=is_fixed)\n"
        "    print(torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32,"
        " torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark)"
    )
    done = warm.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["highest", "False", "False", "True", "highest", "False", "False", "False"]


@pytest.mark.parametrize(
    "fault", ["stale", *(pytest.param(fault, marks=pytest.mark.long) for fault in ("allocate", "send", "map"))]
)
def test_memory_that_cannot_be_shared_ends_a_run_with_a_sentence(fault, tmp_path):
    done = warm.run(
        [
            *(sys.executable, "-m", "sf", "--env", "toy_identity", "--device", "cuda"),
            *("--train_dir", str(tmp_path), "--train_for_seconds", "600"),
        ],
        env={**environment(), "LATE_GPU_FAULT": fault},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    sentence = "read weights of version 0" if fault == "stale" else "GPU memory cannot be shared between processes"
    assert sentence in done.stderr


def test_what_a_killed_process_leaves_is_removed_and_no_others(monkeypatch, tmp_path):
    names = ["cuda.shm.0.1f4.1", "cuda.shm.1000.1f4.2", "cuda.shm.0.1f41.1", "cuda.shm.0.500.1", "torch_500_1"]
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setattr(gpu, "Path", lambda path: tmp_path if path == "/dev/shm" else None)
    gpu.forget_killed(0x1F4)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[2:])
