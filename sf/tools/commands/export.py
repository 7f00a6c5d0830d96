"""`sf-export`: a trained policy as one file, for programs that have no trainer, or as a folder with its card."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from sf.envs.field_types import require
from sf.tools.commands import cli

if TYPE_CHECKING:
    from sf.storage.checkpoint import Checkpoint

_OF_FILES = (".onnx", ".pt2")
_FOR_A_CARD = ("precision", "license", "episodes", "deterministic")


@dataclass(frozen=True)
class ExportFlags:
    """Which policy, and where to."""

    run: tyro.conf.Positional[Path]
    """A run directory, such as train_dir/doom_basic, a checkpoint, zoo/NAME, or hf:USER/NAME."""

    out: Path | None = None
    """The file or folder to write. A name that ends with .onnx (onnxruntime and others) or .pt2 (torch.export) sets the
    format of a file. A name without an ending is a folder: weights, configuration and card, which every command here
    reads."""

    card: cli.Switch = False
    """Write the card of the run, README.md, into its directory: command, versions, and the score of --episodes."""

    hub: str | None = None
    """Upload the folder to the Hugging Face Hub, as USER/NAME. Needs pip install '.[hub]' and a token. What is there
    stays as an earlier revision."""

    private: cli.Switch = False
    """Only you can see the repository that --hub makes."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the weights in a folder or on the Hub. bfloat16 halves their size. The card has its score. A file
    is float32."""

    license: str | None = None
    """Licence of the weights, for the card: mit, apache-2.0, cc-by-4.0 and others, as the Hub spells them."""

    episodes: int = 100
    """Episodes for the score in the card, and in games of several agents as many more against random moves."""

    deterministic: bool = False
    """Score the most probable actions. false: sample actions, as in training."""

    checkpoint: str = "latest"
    """latest, or best: the best checkpoint of the run so far (docs/evaluation.md says by which measure)."""

    policy: int | None = None
    """Number of the policy to export, in a run with several. Default: 0."""

    trust: bool = False
    """Allow importing the environment, encoder or model that a checkpoint names (module:Name). This runs their code.
    Needed only if you have not trained with them before: docs/reliability.md."""

    def __post_init__(self) -> None:
        writes = self.out is not None or self.hub is not None or self.card
        require(writes, "nothing to write: name --out FILE, --out FOLDER, --card or --hub USER/NAME")
        require(self.hub is not None or not self.private, "private is true: that is for --hub")
        require(self.episodes >= 1, f"episodes is {self.episodes}: at least 1")
        if self.hub is None and not self.card and self.out is not None and self.out.suffix in _OF_FILES:
            for field in fields(self):
                value = getattr(self, field.name)
                if field.name in _FOR_A_CARD and value != field.default:
                    raise ValueError(
                        f"{field.name} is {str(value).lower()}, but {self.out} has no card: leave it out, or name a "
                        "folder, --card or --hub"
                    )


def main() -> None:
    """Export, say what is in the file; end with 0, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        ExportFlags,
        "sf-export",
        "Export a trained policy: to one file, checked against PyTorch, or to a folder with its card, here or on the "
        "Hugging Face Hub. Example: sf-export train_dir/doom_basic --out policy.onnx",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: ExportFlags) -> None:
    from sf.evaluation.play.named_checkpoint import find_trusted  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.storage.zoo.places import located  # noqa: PLC0415

    path = located(flags.run)
    if flags.policy is not None and path.is_file():
        raise ValueError(
            f"policy is {flags.policy}, but {flags.run} is a checkpoint, which has one policy: leave it out"
        )
    file, saved = find_trusted(path, flags.checkpoint, flags.policy or 0, is_trusted=flags.trust)
    folder = flags.out if flags.out is not None and not flags.out.suffix else None
    if flags.out is not None and folder is None:
        _write_file(flags.out, file, saved)
    if flags.card or flags.hub is not None or folder is not None:
        _share(flags, folder, file, saved)


def _write_file(out: Path, file: Path, saved: Checkpoint) -> None:
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
    from sf.tools.export.check import TOLERANCE  # noqa: PLC0415
    from sf.tools.export.export import export_policy  # noqa: PLC0415

    policy = TorchPolicy(saved, str(file))
    export = export_policy(policy, out)
    print(
        f"{out}: {policy.env_id} after {policy.env_steps:,} env steps ({file}), {export.num_bytes / 1e6:.1f} MB\n"
        f"inputs:  {_listed(export.inputs)}\n"
        f"outputs: {_listed(export.outputs)}\n"
        f"largest difference from PyTorch: {export.difference:.1e} (allowed: {TOLERANCE:g})"
    )


def _share(flags: ExportFlags, folder: Path | None, file: Path, saved: Checkpoint) -> None:
    """The policy for others: as a folder, as the card of its run, on the Hub. What is wrong is said before it plays."""
    from sf.evaluation.results import win_rate  # noqa: PLC0415
    from sf.evaluation.statistics import interval_text, mean_text  # noqa: PLC0415
    from sf.storage import output_file  # noqa: PLC0415
    from sf.storage.zoo import hub  # noqa: PLC0415
    from sf.tools.export.policy_folder import INSTEAD_OF_CARD, ScoredPolicy, card_of_run, require_folder  # noqa: PLC0415

    card = card_of_run(flags.run, folder is not None) if flags.card else None
    if folder is not None:
        require_folder(folder)
    if flags.hub is not None:
        hub.require_upload(flags.hub, flags.private)
    scored = ScoredPolicy.of(saved, file, flags.precision, flags.episodes, flags.deterministic, cli.EpisodeProgress())
    print(f"{file}: mean return {mean_text(scored.statistics['return'])}")
    if (won := win_rate(scored.against_random)) is not None:
        print(f"win rate against random moves: {won.mean:.1%} ({interval_text(won, '.1%')})")
    if card is not None:
        # Whoever names the run alone plays the latest of all its policies.
        is_run = flags.checkpoint == "latest" and saved.state["config"].get("num_policies", 1) == 1
        address = _address(flags.run if is_run else file, flags.run)
        text = scored.card(address, flags.license)
        output_file.write("card", card, text.encode(), is_named=False, instead=INSTEAD_OF_CARD)
        print(f"card:   {card}")
    if folder is not None:
        output_file.write_folder("out", folder, scored.files(_address(folder, folder), flags.license))
        print(f"folder: {folder}, to play: {shlex.join(['sf-enjoy', str(folder)])}")
    if flags.hub is not None:
        files = scored.files(f"hf:{flags.hub}", flags.license)
        env_steps = saved.state["env_steps"]
        commit = hub.upload(
            flags.hub, files, flags.private, f"{saved.state['config']['env']} after {env_steps:,} env steps"
        )
        print(f"hub:    {commit}, to play: sf-enjoy hf:{flags.hub}")


def _address(path: Path, named: Path) -> str:
    """What a card says to play, as the user has named it; absolute where that has no name, such as "."."""
    return str(path.resolve() if named.name in ("", "..") else path)


def _listed(tensors: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in tensors.items())
