"""Flags of what may watch a run besides the terminal and TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields


@dataclass(frozen=True)
class WatchConfig:
    """Trackio and Weights & Biases, with the same curves as TensorBoard."""

    with_trackio: bool = False
    """Also show metrics and videos on a page on this machine, by Trackio (pip install '.[trackio]'). It needs no
    account; trackio show opens the page."""

    with_wandb: bool = False
    """Also send metrics to Weights & Biases (pip install '.[wandb]'). Without an API key they are kept in the run
    directory, for wandb sync."""

    wandb_project: str = "sf-appo"
    """W&B project."""

    wandb_entity: str | None = None
    """W&B user or team that owns the project. Default: that of the API key."""

    wandb_group: str | None = None
    """W&B group, for example one for all seeds of an experiment."""

    wandb_tags: tuple[str, ...] = ()
    """W&B tags."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.wandb_project:
            raise ValueError("wandb_project is empty: name a project, for example --wandb_project sf-appo")
