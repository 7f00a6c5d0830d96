"""`load_policy(path).act(obs)`: a trained policy to act with, from a run, a checkpoint or an export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sf.evaluation.play.policy import Policy


def load_policy(
    path: str | Path,
    which: str = "latest",
    policy_id: int = 0,
    device: str = "cpu",
    seed: int = 0,
    say: Callable[[str], None] = print,
    trust: bool = False,
) -> Policy:
    """Load a policy from a run directory, a checkpoint, the folder of a policy, the zoo ("zoo/doom_basic"), the Hugging
    Face Hub ("hf:USER/NAME"), or an ONNX file of `sf-export`, which needs no torch.

    which: "latest" or "best" of a run. policy_id: for a run with several. device: an ONNX file takes "cpu"
    alone. seed: of the actions that it draws. trust: take a checkpoint that names code (module:Name) which you have not
    trained with before, and import its encoder or model. Raises ValueError where there is no such policy or it cannot
    be used.
    """
    if not hasattr(policy_id, "__index__"):
        raise ValueError(f"policy_id is {policy_id!r}: name a policy by its number, from 0 on")
    suffix = Path(path).suffix
    if suffix == ".onnx":
        _require_only_policy(path, policy_id)
        if device != "cpu":
            raise ValueError(f"device is {device}, but an exported policy acts on the CPU here: leave it out")

        from sf.evaluation.play.onnx_policy import OnnxPolicy  # noqa: PLC0415

        return OnnxPolicy(path, seed)
    if suffix == ".pt2":
        raise ValueError(f"{path} is for torch.export.load (see docs/export.md): load an .onnx file here")

    from sf.evaluation.play.named_checkpoint import find_trusted  # noqa: PLC0415  torch is slow to import
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
    from sf.storage.zoo.places import located  # noqa: PLC0415

    _require_device(device)
    found = located(path)
    if found.is_file():
        _require_only_policy(path, policy_id)
    file, saved = find_trusted(found, which, policy_id, say, trust)
    return TorchPolicy(saved, str(file), device, seed)


def _require_device(device: str) -> None:
    import torch  # noqa: PLC0415  slow to import

    try:
        torch.empty(0, device=device)
    except (TypeError, RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device is {device!r}, which torch cannot use here ({reason}): cpu, or cuda where there is a GPU"
        ) from None


def _require_only_policy(path: str | Path, policy_id: int) -> None:
    if policy_id != 0:
        raise ValueError(f"policy_id is {policy_id}, but {path} has one policy: leave it out")
