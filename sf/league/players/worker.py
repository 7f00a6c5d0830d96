"""The player worker: computes the actions of fixed opponents, seat by seat.

Consumes   requests (group indices) of all groups in which a seat plays; new players in the seats.
Produces   actions in the slots' rows; answers (group indices) to the inboxes; reports of players that cannot be loaded.
Waits for  a request, or word from the parent that a seat has a new player.
Unblocked  by a rollout worker, by the parent, or by a stop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sf.config import Config, ModelConfig
from sf.config.trust import require_trusted
from sf.envs import EnvSpec
from sf.envs.field_types import checked
from sf.envs.seeding import env_seed
from sf.evaluation.play.named_checkpoint import require_whole_state
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.own_rows import in_rows_of
from sf.evaluation.play.player import Actors
from sf.evaluation.play.torch_policy import NetworkActors, TorchPolicy
from sf.model.acting import AnyActing
from sf.model.compiled_acting import acting_of
from sf.shared.counters import CounterRow
from sf.shared.queues import StopRequested
from sf.shared.requests import PolicyChannel
from sf.shared.rows import OBS, TurnMask, policy_fields, policy_keys
from sf.shared.seats import Seats
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system import gpu
from sf.system.arrays import SharedArrays
from sf.system.messages import nobody, said_to
from sf.system.processes.reports import PlayerFailed, Ready, Reports, Seated
from sf.system.processes.torch_runtime import configure


@dataclass(frozen=True)
class PlayerWorkerArgs:
    """Holds everything the player worker needs to know."""

    directory: Path  # of NAME.safetensors
    trusts: bool  # the code that these name
    opponents: Mapping[str, Opponent]  # players without a network, by name
    spec: EnvSpec
    model: ModelConfig  # of the policies of the run
    bfloat16: bool
    device: str
    num_threads: int
    seed: int
    seed_key: tuple[int, ...]  # differs from one start of this worker to the next
    num_actors: int
    seats: Seats
    rows: SharedArrays  # of the slots
    channel: PolicyChannel
    counters: CounterRow


@said_to(nobody)  # a policy worker says the same
def player_worker(reports: Reports, args: PlayerWorkerArgs) -> None:
    """Is the body of the process."""
    configure(args.device, args.num_threads, deterministic=False)
    channel, counters = args.channel, args.counters
    players = _Players(args, reports)
    players.take_seats()
    reports.send(Ready())
    while True:
        counters.waiting()
        try:
            groups = np.array(sorted(channel.look()), np.int64)
        except StopRequested:
            return
        counters.working()
        players.take_seats()
        counters.add(steps=players.act(groups), calls=1)


class _Players:
    """Holds the players in the seats, and has them act."""

    def __init__(self, args: PlayerWorkerArgs, reports: Reports) -> None:
        self._args = args
        self._reports = reports
        self._seats = args.seats
        self._turns = [0] * args.seats.num_seats  # of the players that are here
        self._seated: dict[int, _Seated] = {}  # by seat
        self._of_snapshots: dict[int, tuple[Any, AnyActing]] = {}  # by seat: the network, and how it acts
        self._turn_mask = TurnMask.from_rows(args.rows)
        self._written = policy_fields(args.spec)
        self._obs = args.rows.named(OBS)  # [num_slots, T+1, ...]
        self._keys = policy_keys(args.spec)

    def take_seats(self) -> None:
        """Load the players that the parent has given a seat since the last call."""
        for seat, turn_here in enumerate(self._turns):
            turn = self._seats.turn(seat)
            if turn == turn_here:
                continue
            self._turns[seat] = turn
            name = self._seats.name(seat)
            loading_since = time.perf_counter()
            try:
                self._seated[seat] = self._load(name, seat, turn)
            except (OSError, ValueError) as error:
                self._seated.pop(seat, None)
                self._seats.could_not_load(seat, turn)
                self._reports.send(PlayerFailed(name, str(error)))
            else:
                self._seats.has_loaded(seat, turn, time.perf_counter() - loading_since)
                self._reports.send(Seated(seat))

    def act(self, groups: np.ndarray) -> int:
        """Write the actions of the actors of `groups` [G] that seats play, and answer. Returns how many there were."""
        channel, rows = self._args.channel, self._args.rows
        numbers = channel.numbers(groups)
        num_actions = 0
        for seat, slots, t, numbers_of_actors in channel.rows_by_seat(groups, numbers):
            seated = self._seated.get(seat)
            if seated is None:  # it has begun matches before a death, and its file is gone since
                continue
            num_actions += len(slots)
            asked = channel.still_asked(rows["actor"][slots], numbers_of_actors)
            # Nobody learns from these rows. A slot that a policy began may hold them behind its own.
            for field in self._written:
                rows[field.name][slots[asked], t[asked]] = 0
            if self._turn_mask is None or seated.remembers:
                self._decide(seated, slots, t, numbers_of_actors)
            else:  # who waits needs no network, as in a policy worker
                acts = self._turn_mask.acts(slots, t)
                if acts.any():
                    self._decide(seated, slots[acts], t[acts], numbers_of_actors[acts])
        channel.answer(groups, numbers)
        return num_actions

    def _decide(self, seated: _Seated, slots: np.ndarray, t: np.ndarray, numbers: np.ndarray) -> None:
        """Write the actions of N actors into their rows `t` [N] of `slots` [N]. numbers: [N] of the requests."""
        rows = self._args.rows
        actors = rows["actor"][slots]  # [N]
        obs = {key: self._obs[key][slots, t] for key in self._keys}
        if seated.acting is not None:
            seated.acting.look()  # takes the program where there is one now
        actions = seated.actors.act(obs, rows["first"][slots, t], actors)
        asked = self._args.channel.still_asked(actors, numbers)
        where = slots[asked], t[asked]
        rows["discrete"][where] = actions.discrete[asked]
        rows["continuous"][where] = actions.continuous[asked]

    def _load(self, name: str, seat: int, turn: int) -> _Seated:
        args = self._args
        seed = env_seed(args.seed, *args.seed_key, seat, turn)
        if name in args.opponents:
            return _Seated(args.opponents[name].player().actors(args.num_actors, seed), remembers=True)
        path = args.directory / f"{name}.safetensors"
        saved = checkpoint.load(path)
        require_whole_state(saved, path)
        self._require_trusted(saved, path)
        device = str(gpu.torch_device(args.device))
        policy = TorchPolicy(saved, name, device, precision="bfloat16" if args.bfloat16 else "float32")
        acting = None
        if policy.config.model == args.model and policy.has_rows_of(args.spec):
            acting = self._acting_of_snapshot(seat, policy)  # what the policy workers compile is its program, too
        actors = NetworkActors(policy, args.num_actors, seed, acting)
        return _Seated(in_rows_of(args.spec, policy, actors), policy.network.state_size > 0, acting)

    def _acting_of_snapshot(self, seat: int, policy: TorchPolicy) -> AnyActing:
        """All snapshots of a seat have one network: PyTorch never frees the weights that a program was given."""
        args = self._args
        if seat in self._of_snapshots:
            network, acting = self._of_snapshots[seat]
            network.load_state_dict(policy.network.state_dict())
            policy.network = network
        else:
            acting = acting_of(policy.network, args.model, args.spec, args.bfloat16, args.device, math.inf)
            self._of_snapshots[seat] = policy.network, acting
        return acting

    def _require_trusted(self, saved: Checkpoint, path: Path) -> None:
        """Raises ValueError for the network of somebody else that is code, unless the run trains with it, too."""
        flags, own = checked(Config, saved.state["config"], str(path)), self._args.model
        named = {flag: flags[flag] for flag in ("encoder", "model") if flag in flags}
        require_trusted(
            {flag: name for flag, name in named.items() if name != getattr(own, flag)}, path, self._args.trusts
        )


@dataclass(frozen=True)
class _Seated:
    """Holds the player in a seat."""

    actors: Actors  # all of the run
    remembers: bool  # so it has to see what happens while it waits, too
    acting: AnyActing | None = None  # by which they act, where that may become a program
