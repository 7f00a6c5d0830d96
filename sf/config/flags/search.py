"""Flags of training by search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require

_MOST_SIMULATIONS = 10_000
_MOST_GAMES = 10_000_000


@dataclass(frozen=True)
class SearchConfig:
    """Choose how a search finds the moves of self-play (algorithm search): docs/search.md."""

    simulations: int = 64
    """algorithm search: simulations of the search before each move."""

    search_root: Literal["gumbel", "puct"] = "gumbel"
    """algorithm search: how the search chooses at its root. gumbel: sequential halving with Gumbel noise (Danihelka et
    al. 2022), which improves the policy also with few simulations. puct: by PUCT, with Dirichlet noise; the tree is
    kept from one move to the next."""

    search_temperature_moves: int = 15
    """search_root puct: the first moves of a game, which are drawn in proportion to their visits. Later ones are those
    with the most."""

    search_noise: float = 0.25
    """search_root puct: share of Dirichlet noise in the priors at the root. Its concentration is 10 / choices."""

    search_full_share: float = 1.0
    """algorithm search: share of the moves that are searched with all simulations. The others get a quarter of them, so
    that games are over sooner, and the policy does not learn from these moves, while values do (Wu 2019, KataGo)."""

    resign: bool = False
    """algorithm search: a player resigns where the search finds it to be worth no more than a threshold. One game in
    ten is played on, and the threshold is the highest one at which at most 5 % of those who would resign there do not
    lose. For games of two players that pay at their end alone."""

    buffer_games: int = 0
    """algorithm search: train on positions that are drawn from this many of the latest games, whose outcomes are known.
    0: train on trajectories as they come, each num_epochs times."""

    buffer_min_games: int = 50
    """buffer_games: games that have to end before anything is trained on."""

    buffer_mib: int = 256
    """buffer_games: memory of the games, in MiB. Older games make room where they do not fit."""

    samples_per_position: float = 4.0
    """buffer_games: samples that are trained on for each new position, as a mean, those of all num_epochs counted.
    Training waits for new games where it would take more."""

    value_target: Literal["outcome", "bootstrap"] = "bootstrap"
    """algorithm search: what values learn. bootstrap: a mixture of the outcome and of what searches have found each
    later position to be worth, by gae_lambda. outcome: how the game has ended; it needs buffer_games."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "simulations", least=2, most=_MOST_SIMULATIONS)
        require_range(self, "search_temperature_moves", least=0)
        require_range(self, "search_noise", least=0, most=1)
        require_range(self, "buffer_games", "buffer_min_games", least=0, most=_MOST_GAMES)
        require_range(self, "buffer_mib", least=1)
        require_range(self, "samples_per_position", above=0)
        require_range(self, "search_full_share", above=0, most=1)
        require(
            not self.buffer_games or self.buffer_min_games <= self.buffer_games,
            f"buffer_min_games is {self.buffer_min_games}, and buffer_games {self.buffer_games}: lower the first one, "
            "or raise the second",
        )
        require(
            self.value_target == "bootstrap" or self.buffer_games > 0,
            "value_target is outcome, and buffer_games 0: a trajectory is trained on before its games have ended, so "
            "set buffer_games, too",
        )
