"""Whether the weights of a checkpoint mean in a run what they meant where they were trained.

Asked before a run goes on from its own checkpoints, and before one begins with those of another. The observations and
actions must be laid out alike, and the network must be the same: its weights in name and shape, and the flags that
change what it computes with the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sf.config.older import BEFORE_THE_FLAG
from sf.envs.errors import UsageError
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.space_json import layouts
from sf.evaluation.play.named_checkpoint import spaces_of
from sf.model.normalizers import MISSED
from sf.run.plan import Plan
from sf.storage.checkpoint import Checkpoint

_OF_THE_FUNCTION = (
    "core",
    "core_skip",
    "nonlinearity",
    "layer_norm",
    "share_critic",
    "critic_clock",
    "critic_clock_residual",
    "critic",
    "critic_obs",
    "teacher_obs",
    "mixer",
    "normalize_input",
    "normalize_returns",
    "normalize_returns_by",
    "show_task",
    "value_scale",
)
# What the names and shapes of the weights say, unless the network is somebody's own.
_OF_THE_SHAPES = (
    "encoder_mlp_layers",
    "encoder_conv_mlp_layers",
    "encoder_mlp_residual",
    "encoder_conv_mlp_residual",
    "rnn_size",
)
_OWN_MODEL, _OWN_ENCODERS = "actor_critic", ("auto", "simple", "atari", "small", "resnet", "mlp")


def require_fits(saved: Checkpoint, file: Path, plan: Plan, remedy: str, policy_id: int = 0) -> None:
    """Raises ValueError, which ends with `remedy`, where the checkpoint in `file` is of something else than this policy
    of `plan`."""
    network = plan.networks[policy_id]
    if "obs_space" in saved.state:  # an older checkpoint does not say; its network shows most of it
        obs_space, action_space = spaces_of(saved, file)
        theirs = layouts(ObsWriter(str(file), obs_space).space, action_space)
        own = layouts(network.spec.obs_space, network.spec.action_space)
        for what, layout in theirs.items():
            if layout != own[what]:
                raise UsageError(
                    f"the {what} of {file} are {layout}, and those of {plan.config.run.env} are {own[what]}, so its "
                    f"weights do not fit: {remedy}"
                )
    differing = _differing_flags(saved.state["config"], plan.config.flat())
    shapes = {name: tuple(tensor.shape) for name, tensor in saved.weights.items() if not name.endswith(f".{MISSED}")}
    differing += sorted({name for name, _ in shapes.items() ^ network.weight_shapes.items()})
    if differing:
        raise UsageError(
            f"{file} holds another network than the flags describe (they differ in {', '.join(differing[:3])}): "
            f"{remedy}"
        )


def _differing_flags(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Lists the flags by which networks differ. One that is not saved is as own, unless `BEFORE_THE_FLAG` knows it."""
    theirs = {**own, **BEFORE_THE_FLAG, **theirs, "critic_clock": theirs.get("critic_clock") is True}
    compared = list(_OF_THE_FUNCTION)
    models, encoders = ({theirs[flag], own[flag]} for flag in ("model", "encoder"))
    if models != {_OWN_MODEL}:
        compared += ["model", "encoder", *_OF_THE_SHAPES]
    elif not encoders <= {*_OWN_ENCODERS}:  # of these, no two have weights of the same names and shapes
        compared += ["encoder", *_OF_THE_SHAPES]
    return [name for name in compared if _plain(theirs[name]) != _plain(own[name])]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
