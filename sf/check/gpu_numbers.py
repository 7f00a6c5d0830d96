"""Whether a GPU computes correctly, compared with float64 on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from sf import gpu
from sf.check.probe import ProbeError
from sf.processes.torch_runtime import configure

# Shares of the root mean square. float32 errs by some 1e-6, TF32 (10 bits) by 3e-4, bfloat16 (7 bits) by 3e-3.
_FLOAT32, _TF32, _BFLOAT16 = 3e-5, 3e-3, 3e-2


def convolution(device: str) -> str:
    """Forward and backward, channels_last, in the precisions that networks use."""
    gpu.take(device)
    dtypes = {torch.float32: _TF32}
    if gpu.has_bfloat16():
        dtypes[torch.bfloat16] = _BFLOAT16
    expected = _convolve("cpu", torch.float64)
    said = []
    for dtype, tolerance in dtypes.items():
        for name, ours, right in zip(("output", "gradient"), _convolve(device, dtype), expected, strict=True):
            said.append(_require_close(f"{name} in {dtype}", ours, right, tolerance))
    return "; ".join(said)


def float32(device: str) -> str:
    """With the settings of a learner, TF32 is off."""
    configure(device, num_threads=1, deterministic=False)
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(512, 1024, generator=generator, dtype=torch.float64) for _ in range(2))
    product = left.to(device, torch.float32) @ right.to(device, torch.float32).T
    said = [_require_close("matrix product", product, left @ right.T, _FLOAT32)]
    outputs = zip(
        ("output", "gradient"), _convolve(device, torch.float32), _convolve("cpu", torch.float64), strict=True
    )
    said += [_require_close(f"{name} of a convolution", ours, exact, _FLOAT32) for name, ours, exact in outputs]
    return "; ".join(said)


def _convolve(device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Output [16, 32, 20, 20], and the gradient of the weight [32, 4, 8, 8] for the sum of its squares / 2."""
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> Tensor:
        drawn = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return drawn.to(device, dtype).contiguous(memory_format=torch.channels_last)

    images, weight = numbers(16, 4, 84, 84), numbers(32, 4, 8, 8).requires_grad_()
    output = F.conv2d(images, weight, stride=4)
    (gradient,) = torch.autograd.grad(output, weight, output.detach())
    return output.detach(), gradient


def _require_close(what: str, ours: Tensor, right: Tensor, tolerance: float) -> str:
    error = float((ours.cpu().double() - right).norm() / right.norm())
    if not error <= tolerance:
        raise ProbeError(f"{what}: off by {error:.1e} of its size, and at most {tolerance:.0e} is expected")
    return f"{what} off by {error:.1e}"
