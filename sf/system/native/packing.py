"""Weights in the layout that oneDNN multiplies by, made once for each version of them.

A program that reads weights where the module has them brings them into that layout at every call, which is a sixth of a
policy worker's step of 8 actors. So those of linear layers and convolutions are constants of the program instead:
`PackedProducts` makes them so while the program is made, and `PackedWeights` writes them while it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_CONSTANT = "packed_"  # begins the names of constants; the rest is a position among the weights
_DTYPES = (torch.float32, torch.bfloat16)
_BATCHES = (2, 16, 128, 1024)  # for which oneDNN may choose layouts of its own


def constants(weights: Sequence[Tensor]) -> dict[str, Tensor]:
    """What stands for weights in the program, by names. All are NaN, and so are its results until they are replaced."""
    return {
        f"{_CONSTANT}{idx}": torch.full_like(weight, torch.nan)
        for idx, weight in enumerate(weights)
        if _can_be_packed(weight)
    }


class PackedProducts(TorchFunctionMode):
    """Within it, linear layers and convolutions multiply by constants instead of their weights."""

    def __init__(self, weights: Sequence[Tensor], constants: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._constants = {id(weights[_idx(name)]): constant for name, constant in constants.items()}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        constant = self._constants.get(id(args[1])) if len(args) > 1 and not kwargs else None
        if constant is not None and func is F.linear and args[0].ndim > 1:
            x, _, bias = args if len(args) == 3 else (*args, None)
            return torch.ops.mkldnn._linear_pointwise(x, constant, bias, "none", [], "")
        if constant is not None and func is F.conv2d and len(args) == 7 and args[0].ndim == 4:  # as nn.Conv2d calls it
            x, _, bias, stride, padding, dilation, groups = args
            if groups == 1 and not isinstance(padding, str):
                settings = (padding, stride, dilation, groups)
                return torch.ops.mkldnn._convolution_pointwise(x, constant, bias, *settings, "none", [], "")
        return func(*args, **(kwargs or {}))


class PackedWeights:
    """The constants of a program that is used. `refresh` before each of its runs."""

    def __init__(self, runner: Any, weights: Sequence[Tensor]) -> None:
        """runner: of the program. Raises RuntimeError where weights cannot be packed."""
        names = runner.get_constant_names_to_original_fqns()
        plain = {constant: weights[_idx(name)] for constant, name in names.items() if name.startswith(_CONSTANT)}
        with torch.inference_mode():
            packed = {constant: _packed(weight) for constant, weight in plain.items() if _pays(weight)}
        if plain:  # once: PyTorch never lets go of what it is given here
            runner.update_constant_buffer({**plain, **packed}, False, False, user_managed=True)
        self._pairs = [(packed[constant], plain[constant]) for constant in packed]
        self._versions = self._written()

    def refresh(self) -> None:
        """Pack the weights anew if one of them was written to, as PyTorch counts it: not through `data` or NumPy."""
        versions = self._written()
        if versions != self._versions:
            with torch.inference_mode():
                for packed, weight in self._pairs:
                    packed.copy_(_packed(weight))
            self._versions = versions

    def _written(self) -> list[int]:
        """How many times, for each."""
        return [weight._version for _, weight in self._pairs]


def _idx(name: str) -> int:
    return int(name.removeprefix(_CONSTANT))


def _can_be_packed(weight: Tensor) -> bool:
    if weight.ndim not in (2, 4) or not weight.numel() or weight.dtype not in _DTYPES:
        return False
    try:
        return _can_replace_constants() and _packed(weight).is_mkldnn
    except (AttributeError, RuntimeError):  # another build of PyTorch, or a CPU without products of such numbers
        return False


def _can_replace_constants() -> bool:
    """Without a copy of them, as numbers of a dense tensor: since PyTorch 2.8."""
    update: Any = torch._C._aoti.AOTIModelContainerRunnerCpu.update_constant_buffer
    return "user_managed" in (update.__doc__ or "")


def _packed(weight: Tensor, batch: int = _BATCHES[0]) -> Tensor:
    """For convolutions, settings hardly matter: oneDNN reorders the few weights of one that wants them otherwise."""
    if weight.ndim == 2:
        return torch.ops.mkldnn._reorder_linear_weight(weight, batch)
    return torch.ops.mkldnn._reorder_convolution_weight(weight)


def _pays(weight: Tensor) -> bool:
    """Else the plain weight becomes the constant.

    A layout that fits some batches alone would be changed at every call with others, which takes longer than packing.
    The number of threads decides on that, too.
    """
    if weight.is_inference():  # nobody counts when it is written to
        return False
    layout = torch.ops.mkldnn._get_mkldnn_serialized_md
    layouts = {layout(_packed(weight, batch)).numpy().tobytes() for batch in _BATCHES}
    return len(layouts) == 1
