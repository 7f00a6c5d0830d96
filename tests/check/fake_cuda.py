"""A GPU that is not there: what is asked for on it is made on the CPU, and torch.cuda says what it is told to."""

from contextlib import nullcontext
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode

import sf.gpu


class Stream:
    """Whatever is queued is done at once."""

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        assert event.is_recorded


class Event:
    is_recorded = False

    def __init__(self, blocking):
        assert blocking  # whoever waits sleeps

    def record(self):
        self.is_recorded = True

    def synchronize(self):
        assert self.is_recorded

    def query(self):
        return self.is_recorded


class FakeGpu(TorchFunctionMode):
    """spoil: what becomes of a tensor that arrives on it, or of a product computed on it."""

    def __init__(self, spoil=lambda tensor: tensor):
        super().__init__()
        self.spoil = spoil
        self.pinned = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name == "is_pinned":
            return bool(self.pinned)
        is_on_gpu = any(
            str(value).startswith("cuda") for value in (*args, *(kwargs or {}).values()) if is_device(value)
        )
        args = [on_cpu(value) for value in args]
        kwargs = {key: on_cpu(value) for key, value in (kwargs or {}).items()}
        kwargs.pop("pin_memory", None)
        result = func(*args, **kwargs)
        return self.spoil(result) if is_on_gpu and name == "to" else result


def is_device(value):
    return isinstance(value, str | torch.device)


def on_cpu(value):
    return "cpu" if is_device(value) and str(value).startswith("cuda") else value


def mapped(memory, device, register):
    """As if it were on the GPU."""
    register(memory.ctypes.data, memory.nbytes, 3)
    return torch.from_numpy(memory).to(device)


def install(monkeypatch, gpu, num_gpus=1, registers=True, has_bfloat16=True, free=60 << 30):
    def register(pointer, size, flags):
        assert pointer % 4096 == 0
        assert flags in (0, 3)
        assert size > 0
        if registers:
            gpu.pinned.add(pointer)
        return 0 if registers else 2

    def unregister(pointer):
        gpu.pinned.remove(pointer)
        return 0

    def check_error(code):
        if code != 0:
            raise RuntimeError("CUDA error: out of memory(2)")

    says = {
        "is_available": lambda: num_gpus > 0,
        "device_count": lambda: num_gpus,
        "set_device": lambda device: None,
        "mem_get_info": lambda device: (free, 80 << 30),
        "get_device_capability": lambda device: (9, 0),
        "get_device_name": lambda device: "NVIDIA H100",
        "is_bf16_supported": lambda including_emulation: has_bfloat16,
        "can_device_access_peer": lambda one, other: True,
        "cudart": lambda: SimpleNamespace(cudaHostRegister=register, cudaHostUnregister=unregister),
        "check_error": check_error,
        "Stream": Stream,
        "Event": Event,
        "current_stream": Stream,
        "stream": lambda stream: nullcontext(),
    }
    for name, value in says.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(sf.gpu, "mapped", lambda memory, device: mapped(memory, device, register))
