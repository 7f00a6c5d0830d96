"""Actions that a search chooses: policy workers are asked about its leaves, several times before each step.

All games of a group search at the same time, so one request has the leaves of all of them. What the search has found is
written into the row: its move, and the policy that it prefers, from which the learner's policy learns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.envs import StepResult
from sf.envs.group import CHANCE
from sf.envs.guard import GuardedGroup
from sf.envs.spaces.actions import ACTION_MASK
from sf.rollout.resignation import Resignations
from sf.search.forest import Root
from sf.search.search import GUMBEL, Asked, Search, SearchSettings
from sf.shared.counters import CounterRow
from sf.shared.leaves import Leaves
from sf.shared.requests import WorkerChannel
from sf.shared.rows import FULLY_SEARCHED, OBS, SEARCHED
from sf.system.arrays import SharedArrays

_NEVER = -1e9  # the logit of a choice that the search does not make
_QUICK = 4  # a quick search has this part of the simulations
_CONCENTRATION = 10.0  # of Dirichlet noise, of all choices together


@dataclass(frozen=True)
class SearchArgs:
    """Says how rollout workers search.

    leaves: of all groups. reward_scale: of the learner's values. temperature_moves, noise: of roots by PUCT, see
    `sf.config.flags.search`. full_share: of the moves; the others are searched quickly.
    resigns: players may resign.
    """

    settings: SearchSettings
    leaves: Leaves
    reward_scale: float
    temperature_moves: int
    noise: float
    full_share: float = 1.0
    resigns: bool = False


class SearchedActions:
    """Is a `sf.rollout.actions.Actions` of E games."""

    def __init__(
        self,
        args: SearchArgs,
        channel: WorkerChannel,
        counters: CounterRow,
        group_idx: int,
        envs: GuardedGroup,
        rows: SharedArrays,
        rng: np.random.Generator,
    ) -> None:
        self._args = args
        self._channel = channel
        self._counters = counters
        self._group_idx = group_idx
        self._envs = envs
        self._rows = rows
        self._rng = rng
        self._num_agents = envs.spec.num_agents
        self._games = list(range(envs.num_actors // self._num_agents))
        self._search = Search(envs.forward_model(int(rng.integers(2**31))), args.settings, len(self._games))
        self._is_gumbel = args.settings.root == GUMBEL
        self._leaves = args.leaves.of_group(group_idx)
        channel.tables["slots"][group_idx] = self._leaves.idxs
        self._asked: Asked | None = None
        self._slots = np.empty(0, np.int64)
        self._row = 0
        self._num_kept = 0  # simulations of the trees when the searches under way began
        self._is_full = np.ones(len(self._games), bool)  # [G] the search of the move is not a quick one
        self._resignations = Resignations(len(self._games), rng) if args.resigns else None
        self._num_moves = np.zeros(len(self._games), np.int64)
        self._moves = np.zeros(len(self._games), np.int64)  # of the last step

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._slots = slots

    def ask(self, row: int) -> None:
        self._row = row
        self._num_kept = self._num_simulations()
        if self._args.full_share < 1.0:
            self._is_full = self._rng.random(len(self._games)) < self._args.full_share
        for game in self._games:
            if self._search.is_known(game):
                self._explore(game)
            else:
                self._search.model.begin(game, self._envs.game(game))
        num = self._args.settings.num_simulations
        self._search.begin(self._games, np.where(self._is_full, num, max(2, num // _QUICK)))
        self._ask_about(self._next())

    def have_come(self) -> bool:
        if self._asked is not None:
            num = len(self._asked.game)
            values = self._leaves.value[:num] / self._args.reward_scale
            self._search.evaluate(self._asked, self._leaves.logits[:num], values)
            for game in self._asked.game[self._asked.node == 0].tolist():
                self._explore(game)
        asked = self._next()
        if asked is None:
            self._write()
            return True
        self._ask_about(asked)
        return False

    def after_step(self, result: StepResult) -> None:
        begins: np.ndarray = np.any(result.first.reshape(-1, self._num_agents), axis=1)
        for game in self._games:
            if begins[game]:
                self._end(game, result)
            else:
                self._search.descend(game, int(self._moves[game]))
            if begins[game] or (self._search.is_known(game) and self._search.mover(game) == CHANCE):
                self._search.forget(game)  # the environments do not say what chance was
        self._num_moves = np.where(begins, 0, self._num_moves + 1)

    def _end(self, game: int, result: StepResult) -> None:
        if self._resignations is not None:
            agents = slice(game * self._num_agents, (game + 1) * self._num_agents)
            has_outcome = result.terminated[agents].all()
            would, wrong = self._resignations.game_over(game, result.reward[agents] if has_outcome else None)
            self._counters.add(searched_games=1, would_resign=would, would_resign_wrongly=wrong)

    def _next(self) -> Asked | None:
        """Returns the next positions to ask about; None: the search is over."""
        while not self._search.is_done:
            asked = self._search.leaves()
            if len(asked.game):
                return asked
        return None

    def _ask_about(self, asked: Asked | None) -> None:
        """A request about nothing is answered, too."""
        self._asked = asked
        num = 0 if asked is None else len(asked.game)
        if asked is not None:
            self._counters.add(leaves=num, leaf_depth=self._search.depth(asked), leaf_requests=1)
            self._search.model.show(asked.game.tolist(), asked.node.tolist(), self._leaves.obs)
        asked_rows = self._channel.tables["policy"][self._group_idx]
        asked_rows[:num], asked_rows[num:] = 0, -1
        self._channel.ask(self._group_idx, 0)

    def _num_simulations(self) -> int:
        return sum(map(self._search.num_simulations, self._games))

    def _explore(self, game: int) -> None:
        num = self._search.num_choices(game)
        if self._is_gumbel:
            self._search.disturb(game, self._rng.gumbel(size=num))
        elif self._args.noise and self._is_full[game]:
            self._search.disturb(game, self._rng.dirichlet(np.full(num, _CONCENTRATION / num)), self._args.noise)

    def _write(self) -> None:
        """Write what the search has found into the row that is under way."""
        self._counters.add(kept_simulations=self._num_kept, simulations=self._num_simulations() - self._num_kept)
        rows, slots, t = self._rows, self._slots, self._row
        for name in ("discrete", "continuous", "log_prob", "value", SEARCHED, FULLY_SEARCHED):
            rows[name][slots, t] = 0
        rows["policy_version"][slots, t] = self._leaves.version[0]
        acts = (rows[OBS + ACTION_MASK][slots, t] != 0).reshape(len(slots), -1).any(axis=1)
        for game in self._games:
            root = self._search.read(game)
            logits = self._improved(root)
            k = self._chosen(game, root, logits)
            (actor,) = np.flatnonzero(acts[game * self._num_agents : (game + 1) * self._num_agents])
            where = slots[game * self._num_agents + actor], t
            self._moves[game] = move = int(root.action[k])
            rows["discrete"][where] = move
            rows["log_prob"][where] = logits[k]
            rows["value"][where] = root.root_value * self._args.reward_scale
            rows[FULLY_SEARCHED][where] = self._is_full[game]
            preferred = rows[SEARCHED][where]
            preferred[:] = _NEVER
            preferred[root.action] = logits
            if self._resignations is not None and self._resignations.resigns(game, int(actor), root.root_value):
                self._envs.resign(game)
                self._counters.add(resigned_games=1)

    def _improved(self, root: Root) -> np.ndarray:
        """Returns the logarithms [K] of the policy that the search prefers: without choices that lose for certain, and
        with those alone that win."""
        weight = root.weight if self._is_gumbel else np.log(np.maximum(root.visits, 1e-9))
        best = root.certain.max()
        if best == 1:
            weight = np.where(root.certain == 1, 0.0, _NEVER)
        elif best == 0:
            weight = np.where(root.certain == -1, _NEVER, weight)
        shifted = weight - weight.max()
        logits: np.ndarray = np.maximum(shifted - np.log(np.exp(shifted).sum()), _NEVER)
        return logits

    def _chosen(self, game: int, root: Root, logits: np.ndarray) -> int:
        """Returns which of the K choices is played."""
        if not self._is_gumbel and self._num_moves[game] < self._args.temperature_moves:
            return int(self._rng.choice(len(logits), p=np.exp(logits) / np.exp(logits).sum()))
        return int(np.lexsort((root.score, root.certain))[-1])
