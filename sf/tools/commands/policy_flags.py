"""The flags that all commands have in which policies play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.envs.field_types import require
from sf.search.search import SearchSettings


@dataclass(frozen=True, kw_only=True)
class PolicyFlags:
    """Choose which weights of a run play, and how."""

    checkpoint: str = "latest"
    """latest, or best: the best checkpoint of a run so far (docs/evaluation.md says by which measure)."""

    deterministic: bool = False
    """Policies take their most probable action. false: they sample actions, as in training."""

    override: tuple[str, ...] = ()
    """Environment options to change, for example --override doom_match_s=60."""

    search_sees_all: bool = False
    """Let players that search see the whole state of a game with hidden state, such as rts_mini. false: they refuse to
    play it. docs/search.md."""

    seed: int = 0
    """Seed of environments, actions and lineups. The same command gives the same episodes."""

    trust: bool = False
    """Allow importing the environment, encoder or model that a checkpoint names (module:Name). This runs their code.
    Needed only if you have not trained with them before: docs/reliability.md."""

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed is {self.seed}: it must be 0 or greater")

    @property
    def overrides(self) -> tuple[str, ...]:
        """Returns all environment options to change, as `override` has them."""
        return (*self.override, "search_sees_all=true") if self.search_sees_all else self.override


@dataclass(frozen=True, kw_only=True)
class SearchFlags(PolicyFlags):
    """Choose whether the policies of the run that is named look ahead."""

    search: int | None = None
    """Simulations of a tree search before each move of the policies of RUN, in games of OpenSpiel, strategy games, and
    Gymnasium environments that can be copied: docs/search.md. Others search as search:N:RUN in --against."""

    search_root: Literal["puct", "gumbel"] = "puct"
    """How that search chooses at its root: PUCT, or sequential halving with Gumbel noise, which is better with few
    simulations."""

    search_playouts: float = 0.0
    """What random play from a leaf counts for in its value, from 0 to 1. The rest is what the policy expects there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.search is None or self.search >= 1, f"search is {self.search}: at least 1")
        require(0 <= self.search_playouts <= 1, f"search_playouts is {self.search_playouts:g}: from 0 to 1")

    @property
    def asked_search(self) -> SearchSettings | None:
        """Returns how the policies of the run search; None: not at all."""
        if self.search is None:
            return None
        return SearchSettings(self.search, self.search_root, self.search_playouts)


@dataclass(frozen=True, kw_only=True)
class ManyEpisodesFlags(SearchFlags):
    """Choose how many episodes are played, by which policies of a run, and in how many processes."""

    policy: int | None = None
    """Number of the policy that plays, in a run with several. Default: all of them."""

    episodes: int = 100
    """Episodes per policy, at least, at each of several tasks. In a match, each agent plays one."""

    num_workers: int | None = None
    """Processes. Default: one per core that the command may use."""

    num_envs_per_worker: int = 4
    """Environments that each worker steps together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("episodes", "num_workers", "num_envs_per_worker"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} is {value}: at least 1")
