"""Flags of what may watch a run besides the terminal and TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields


@dataclass(frozen=True)
class WatchConfig:
    """Weights & Biases: the same curves as in TensorBoard, there. See sf.metrics.wandb_sink."""

    with_wandb: bool = False
    """Send the metrics to Weights & Biases, too; without an API key they are kept in the run directory, for wandb
    sync. Needs pip install wandb."""

    wandb_project: str = "sf-appo"
    """Project of the run there."""

    wandb_entity: str | None = None
    """User or team that the project belongs to. Default: that of the API key."""

    wandb_group: str | None = None
    """Group of the run, for example one for all seeds of an experiment."""

    wandb_tags: tuple[str, ...] = ()
    """Tags of the run."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.wandb_project:
            raise ValueError("wandb_project is empty: name a project, for example --wandb_project sf-appo")
