"""`sf-export`: a trained policy as one file, for programs that have no trainer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from sf.commands import cli


@dataclass(frozen=True)
class ExportFlags:
    """Which policy, and where to."""

    run: tyro.conf.Positional[Path]
    """A run directory, such as train_dir/doom_basic, or a checkpoint."""

    out: Path
    """The file to write. Its name sets the format: .onnx (onnxruntime and others) or .pt2 (torch.export)."""

    checkpoint: str = "latest"
    """latest, or best: the best checkpoint of the run so far (docs/evaluation.md says by which measure)."""

    policy: int = 0
    """Number of the policy to export, in a run with several."""

    trust: bool = False
    """Allow importing the encoder or model that a checkpoint names (module:Name). This runs their code. Needed only
    if you have not trained with them before: docs/reliability.md."""


def main() -> None:
    """Export, say what is in the file; end with 0, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        ExportFlags,
        "sf-export",
        "Export a trained policy to one file, and check it against PyTorch. "
        "Example: sf-export train_dir/doom_basic --out policy.onnx",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: ExportFlags) -> None:
    from sf.export.check import TOLERANCE  # noqa: PLC0415
    from sf.export.export import export_policy  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.play.named_checkpoint import find_trusted  # noqa: PLC0415
    from sf.play.torch_policy import TorchPolicy  # noqa: PLC0415

    file, saved = find_trusted(flags.run, flags.checkpoint, flags.policy, is_trusted=flags.trust)
    policy = TorchPolicy(saved, str(file))
    try:
        export = export_policy(policy, flags.out)
    except OSError as error:
        raise ValueError(f"{flags.out} cannot be written ({error.strerror}): name another --out") from None
    print(
        f"{flags.out}: {policy.env_id} after {policy.env_steps:,} env steps ({file}), {export.num_bytes / 1e6:.1f} MB\n"
        f"inputs:  {_listed(export.inputs)}\n"
        f"outputs: {_listed(export.outputs)}\n"
        f"largest difference from PyTorch: {export.difference:.1e} (allowed: {TOLERANCE:g})"
    )


def _listed(tensors: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in tensors.items())


if __name__ == "__main__":
    main()
