"""A GPU that is not there: what is asked for on it is made on the CPU, and torch.cuda says what it is told to."""

import torch
from torch.overrides import TorchFunctionMode


class FakeGpu(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {key: on_cpu(value) for key, value in (kwargs or {}).items()}
        return func(*[on_cpu(value) for value in args], **kwargs)


def on_cpu(value):
    return "cpu" if isinstance(value, str | torch.device) and str(value).startswith("cuda") else value


def install(monkeypatch, num_gpus=1, has_bfloat16=True, free=60 << 30):
    says = {
        "is_available": lambda: num_gpus > 0,
        "device_count": lambda: num_gpus,
        "set_device": lambda device: None,
        "mem_get_info": lambda device: (free, 80 << 30),
        "get_device_capability": lambda device: (9, 0),
        "get_device_name": lambda device: "NVIDIA H100",
        "is_bf16_supported": lambda including_emulation: has_bfloat16,
    }
    for name, value in says.items():
        monkeypatch.setattr(torch.cuda, name, value)
