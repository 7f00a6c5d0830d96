"""Which encoder each observation gets, and how it is made.

The built-in encoders register themselves here, before one of a user's could take their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import gymnasium as gym

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.observations import is_image
from sf.envs.spaces.planes import Planes
from sf.envs.spaces.symbol_grids import SMALLEST_IMAGE, is_float_board, is_symbols, shorter_side
from sf.model.encoders import boards, images, symbols, vectors  # noqa: F401
from sf.model.registry import make

NOT_NORMALISED = ("symbols", "planes", "map")  # codes have no mean, and a zero of a board is an empty square


def encoder_names(
    named: str, boxes: Mapping[str, gym.spaces.Box], any_planes: bool = True, float_planes: bool = True
) -> dict[str, str]:
    """The encoder of each observation. named, any_planes, float_planes: the flags `encoder` and of these names.

    One that is named is for the images. Without images it is for the grids of symbols, without these for the boards,
    and without these for all. The others get what they get with auto.
    """
    kinds = {key: _kind(box, any_planes, float_planes) for key, box in boxes.items()}
    meant = next((kind for kind in ("image", "symbols", "planes") if kind in kinds.values()), "vector")
    return {
        key: named if named != "auto" and kind == meant else _automatic(kind, boxes[key]) for key, kind in kinds.items()
    }


def build_encoder(name: str, space: gym.spaces.Box, config: ModelConfig) -> Any:
    """A module with `out_size`. Raises ValueError for an unknown name, for what makes no such module, and where `space`
    does not suit it."""
    encoder = make("encoder", name, space=space, config=config)
    if not isinstance(getattr(encoder, "out_size", None), Integral):
        raise UsageError(f"encoder is {name}, which has no out_size: set it to the number of features that it gives")
    return encoder


def _kind(box: gym.spaces.Box, any_planes: bool, float_planes: bool) -> str:
    if isinstance(box, Planes) or (float_planes and is_float_board(box)):
        return "planes"
    if is_symbols(box, any_planes):
        return "symbols"
    return "image" if is_image(box) else "vector"


def _automatic(kind: str, box: gym.spaces.Box) -> str:
    if kind != "image":
        return "mlp" if kind == "vector" else kind
    return "resnet" if shorter_side(box) < SMALLEST_IMAGE else "simple"
