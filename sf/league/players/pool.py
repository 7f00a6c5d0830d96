"""The pool of players of a run, and what the matches so far say of each, from the side of each policy that learns.

All but the win rate that a snapshot is taken at follows from the rows of league.jsonl, in their order. So a resumed run
has the pool that it had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from sf.config.flags.players import OpponentChoice
from sf.league.openskill_ratings import OpenskillRatings
from sf.league.ratings import Rating
from sf.league.record import ExploiterRestarted, Match, Player, Row, meetings, policy_name, result

_STEP_OF_QUALITY = 0.01  # eta in OpenAI Five
_RECENT = 100  # matches against a player that a win rate is about
_MATCHES_IN_A_ROW = 16  # about as many are in a seat: together they say how seldom a player is met
_SINCE_SNAPSHOT = 200  # matches of this session against the pool that say whether a policy beats it


class Pool:
    """players: in the order in which they joined. idx: the position of a player there, by its name. gone: the names of
    those that cannot be loaded, as they are found.

    last_snapshot: [P] env steps of the latest snapshot of each policy; None if there is none.
    """

    def __init__(self, num_policies: int, rows: Iterable[Row] = (), held: Mapping[str, float] | None = None) -> None:
        """held: ratings that are known, by name; None: the first player has 0."""
        self._held = held
        self._ratings: OpenskillRatings | None = None
        self.players: list[Player] = []
        self.idx: dict[str, int] = {}
        self.gone: set[str] = set()
        self.num_policies = num_policies
        self._names = [policy_name(policy_id) for policy_id in range(num_policies)]
        self._quality: list[list[float]] = [[] for _ in range(num_policies)]
        self._num_met = [0] * num_policies  # matches of each policy against all players
        self._counted: list[list[float]] = [[] for _ in range(num_policies)]  # of these, in the quality of each player
        self._recent: list[list[deque[float]]] = [[] for _ in range(num_policies)]
        self.last_snapshot: list[int | None] = [None] * num_policies
        self._since_snapshot = [deque[float](maxlen=_SINCE_SNAPSHOT) for _ in range(num_policies)]
        for row in rows:
            if isinstance(row, Player):
                self.join(row)
            elif isinstance(row, Match):
                self.add(row)
            elif isinstance(row, ExploiterRestarted):
                self.begin_anew(row)

    @property
    def is_gone(self) -> bool:
        """Returns whether no player can be loaded, or there is none."""
        return self.gone.issuperset(self.idx)

    def player(self, name: str) -> Player:
        return self.players[self.idx[name]]

    def join(self, player: Player) -> None:
        """Add a player, whose quality is the highest of the pool."""
        self._ratings = self._ratings or OpenskillRatings(self._held or {player.name: 0.0})
        self._ratings.add(player)
        self.idx[player.name] = len(self.players)
        self.players.append(player)
        if player.policy is not None and player.policy < len(self._names):
            self.last_snapshot[player.policy] = max(self.last_snapshot[player.policy] or 0, player.env_steps or 0)
            self._since_snapshot[player.policy].clear()
        for policy_id in range(len(self._names)):
            self._quality[policy_id].append(max(self._quality[policy_id], default=0.0))
            self._counted[policy_id].append(self._num_met[policy_id])
            self._recent[policy_id].append(deque(maxlen=_RECENT))

    def add(self, match: Match, settled: Collection[int] = ()) -> None:
        """Count a match. settled: the policies that may beat the pool by it, see `MatchResults`."""
        if self._ratings is not None:
            self._ratings.add(match)
        for name, other, score, other_score in meetings(match):
            if name in self._names and other in self.idx:
                policy_id, idx, won = self._names.index(name), self.idx[other], result(score, other_score)
                self._recent[policy_id][idx].append(won)
                if policy_id in settled:
                    self._since_snapshot[policy_id].append(won)
                self._num_met[policy_id] += 1
                matches = self._take_uncounted(policy_id, idx)
                if won == 1.0:
                    quality = self._quality[policy_id]
                    quality[idx] = quality_after_win(quality[idx], matches, len(self.players))

    def _take_uncounted(self, policy_id: int, idx: int) -> float:
        """Returns how many matches of the policy this one against the player stands for, 1 / p on average. Over many
        they add up to all matches since the player joined, whatever their order."""
        matches = (self._num_met[policy_id] - self._counted[policy_id][idx]) / _MATCHES_IN_A_ROW
        self._counted[policy_id][idx] += matches
        return matches

    def begin_anew(self, row: ExploiterRestarted) -> None:
        """Rate an exploiter as a new player from now on."""
        if self._ratings is not None:
            self._ratings.add(row)

    def probabilities(self, policy_id: int, choice: OpponentChoice) -> np.ndarray:
        """Returns the probability with which the policy is to meet each player, [K]."""
        recent = self._recent[policy_id]
        return probabilities(
            choice,
            np.array(self._quality[policy_id]),
            np.array([sum(each) for each in recent]),
            np.array([len(each) for each in recent]),
        )

    def beats_the_pool(self, policy_id: int, win_rate: float) -> bool:
        """Returns whether it has won this share of its latest 200 matches of this session, since its last snapshot."""
        results = self._since_snapshot[policy_id]
        return len(results) == results.maxlen and float(np.mean(results)) >= win_rate

    def rating(self, policy_id: int) -> Rating | None:
        """Returns the rating of the policy as it is now, or None before its first match."""
        if self._ratings is None or not any(self._recent[policy_id]):
            return None
        return self._ratings.of(self._names[policy_id])

    def win_rates(self, policy_id: int) -> dict[str, tuple[float, int]]:
        """Returns by player the share of its latest matches that the policy won, a draw as half, and their number."""
        return {
            player.name: (sum(recent) / len(recent), len(recent))
            for player, recent in zip(self.players, self._recent[policy_id], strict=True)
            if recent
        }


def probabilities(choice: OpponentChoice, quality: np.ndarray, wins: np.ndarray, matches: np.ndarray) -> np.ndarray:
    """Returns the probabilities of the K players of a pool, [K], which add up to 1.

    quality: [K], see `quality_after_win`. wins, matches: [K], those of the learning policy against each player of late.

    quality: softmax(quality), of OpenAI et al. 2019, "Dota 2 with Large Scale Deep Reinforcement Learning", appendix on
    opponent sampling. pfsp, pfsp_even: f(x) over its sum, where x is the win rate, f_hard(x) = (1 - x)^2 and
    f_var(x) = x (1 - x), of Vinyals et al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement
    learning", methods. x is (wins + 1) / (matches + 2), so that no player is given up for good.
    """
    assert len(quality) == len(wins) == len(matches) > 0
    win_rate = (wins + 1) / (matches + 2)
    weights = {
        "quality": np.exp(quality - quality.max()),
        "pfsp": (1 - win_rate) ** 2,
        "pfsp_even": win_rate * (1 - win_rate),
        "uniform": np.ones(len(quality)),
    }[choice]
    return weights / weights.sum()


def quality_after_win(quality: float, matches: float, num_players: int) -> float:
    """Returns the quality of a player that the learning policy has beaten, of N in the pool.

    q <- q - eta / (N p), so a player that is met often loses no more of its quality than others (OpenAI et al. 2019).
    Draws and defeats do not change it. matches: 1 / p as it is found, the matches of the policy for each one against
    this player. A player in a seat has many matches in a row, and in the meantime p changes with the quality.
    """
    return quality - _STEP_OF_QUALITY * matches / num_players
