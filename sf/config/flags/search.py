"""Flags of training by search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields

_MOST_SIMULATIONS = 10_000


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

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "simulations", least=2, most=_MOST_SIMULATIONS)
        require_range(self, "search_temperature_moves", least=0)
        require_range(self, "search_noise", least=0, most=1)
