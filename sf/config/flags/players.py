"""Flags of the league: players that do not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require

_MOST_SEATS = 1_000

OpponentChoice = Literal["quality", "pfsp", "pfsp_even", "uniform"]


@dataclass(frozen=True)
class PlayersConfig:
    """Matches against past selves and other players that do not learn: docs/league.md."""

    past_share: float = 0.0
    """Share of the matches that are against a player of the pool: an earlier self of a policy, or one of players. The
    others are among the policies that learn. OpenAI Five: 0.2. 0: no pool."""

    snapshot_every_env_steps: int = 500_000
    """Env steps of a policy between two snapshots of it, which join the pool. The first is taken at the start. 0: none,
    so that the pool is players alone."""

    snapshot_at_win_rate: float | None = None
    """Also take a snapshot when a policy has won this share of its latest 200 matches against the pool."""

    opponent_choice: OpponentChoice = "quality"
    """Which players of the pool to meet. quality: those that are not beaten yet, after OpenAI Five. pfsp, pfsp_even:
    those that win more often, or about as often as they lose, after AlphaStar. uniform: all alike."""

    players: tuple[str, ...] = ()
    """Players that are in the pool from the start: runs (all of their policies), checkpoints, zoo/NAME, random,
    search:N:RUN, openspiel:mcts:N, gtp:COMMAND, bot:NAME, or module:Name, as in sf-eval --against."""

    reference_ratings: str | None = None
    """Ratings at which some of players are held, so that ratings compare between runs: a file of sf-league --json.
    Default: random at 0, where it plays, else the first of the pool."""

    opponent_weights: tuple[float, ...] = ()
    """How often to meet each of players, in their order, in place of opponent_choice: a fixed mixture. Each has a seat
    of its own, and no snapshots are taken."""

    player_roles: tuple[str, ...] = ()
    """The agents that each of players may play, in their order: a pattern of names as in policy_of, or several with
    commas between them. A player may be named once for each role. Default: every role whose spaces the player has."""

    mix_teams: bool = False
    """Draw the agents of a past self, of an exploiter or of one of several policies without regard to teams: half of
    the agents of a match, at random. false: whole teams, where they are known (--teams)."""

    seats: int = 2
    """Players of a policy that are in memory at a time. While one waits for its last matches to end and another takes
    its seat, the others play. More seats mean more variety at a time, and smaller batches."""

    exploiters: int = 0
    """How many of num_policies, the last ones, are exploiters (AlphaStar): each plays all of its matches against the
    latest weights of one of the others. When it wins, a snapshot of it joins the pool, and it begins anew."""

    exploiter_win_rate: float = 0.7
    """Share of its latest 200 matches that an exploiter has to win for that."""

    exploiter_env_steps: int | None = None
    """Env steps after which an exploiter that has not won joins the pool and begins anew, too (AlphaStar: 4e9).
    Default: it goes on until it wins."""

    ANNEALED = ("past_share",)
    """Fields that --anneal may change."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "past_share", least=0, most=1)
        require_range(self, "snapshot_every_env_steps", "exploiters", least=0)
        require_range(self, "snapshot_at_win_rate", "exploiter_win_rate", above=0.5, most=1)
        require_range(self, "exploiter_env_steps", least=1)
        require_range(self, "seats", least=1, most=_MOST_SEATS)
        require(
            self.snapshot_every_env_steps > 0 or bool(self.players) or not self.with_players,
            "snapshot_every_env_steps is 0 and players is empty, so there is nobody to meet: name players, or take "
            "snapshots",
        )
        weights = self.opponent_weights
        require(
            not weights or len(weights) == len(self.players),
            f"opponent_weights has {len(weights)} numbers, but there are {len(self.players)} players: one for each",
        )
        require(
            all(weight > 0.0 for weight in weights) and sum(weights) < float("inf"),
            f"opponent_weights is {' '.join(f'{weight:g}' for weight in weights)}: above 0 and "
            "finite in sum, so leave out players that are not to be met",
        )
        require(
            not self.player_roles or len(self.player_roles) == len(self.players),
            f"player_roles has {len(self.player_roles)} patterns, but there are {len(self.players)} players: one each",
        )
        rate = self.snapshot_at_win_rate
        require(
            rate is None or (self.snapshot_every_env_steps > 0 and not weights),
            f"snapshot_at_win_rate is {rate}, but no snapshots are taken with opponent_weights, nor where "
            "snapshot_every_env_steps is 0: leave it out",
        )
        require(
            not self.exploiters or self.with_players,
            f"exploiters is {self.exploiters}, but past_share is 0, so nobody would meet the snapshots that they leave "
            "behind: set it, for example 0.2",
        )
        require(
            not self.exploiters or not weights,
            f"exploiters is {self.exploiters}, but with opponent_weights no snapshot of them is taken: leave one out",
        )
        require(
            not self.exploiters or self.past_share < 1.0,
            f"exploiters is {self.exploiters}, but past_share is 1, so nobody would meet the latest weights, whom they "
            "are after: set it below 1",
        )
        require(
            self.past_share > 0 or not self.players,
            f"players is {' '.join(self.players)}, but past_share is 0, so nobody meets them: set it, for example 0.2, "
            "or leave players empty (--players without a value)",
        )
        require(
            self.reference_ratings is None or bool(self.players),
            f"reference_ratings is {self.reference_ratings}, but players is empty: name players that it has ratings of",
        )
        require(
            self.past_share > 0 or rate is None,
            f"snapshot_at_win_rate is {rate}, but past_share is 0, so there is no pool: set it, for example 0.2",
        )

    @property
    def with_players(self) -> bool:
        return self.past_share > 0

    @property
    def waits_for_players(self) -> bool:
        """Whether nothing is trained on before a player has a seat. Snapshots alone come of what was trained on."""
        return self.past_share >= 1 and bool(self.players)
