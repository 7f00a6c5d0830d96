"""The player worker: computes the actions of players that do not learn, seat by seat.

Consumes   requests (group indices) of all groups in which a seat plays; new players in the seats.
Produces   actions in the slots' rows; answers (group indices) to the inboxes; reports of players that cannot be loaded.
Waits for  a request, or word from the parent that a seat has a new player.
Unblocked  by a rollout worker, by the parent, or by a stop.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sf import gpu
from sf.arrays import SharedArrays
from sf.counters import CounterRow
from sf.envs.clock import CLOCK
from sf.play.opponents import Opponent
from sf.play.player import Actors
from sf.play.torch_policy import TorchPolicy
from sf.processes.child import Reports
from sf.processes.torch_runtime import configure
from sf.queues import StopRequested
from sf.requests import PolicyChannel
from sf.rows import OBS
from sf.seats import Seats
from sf.storage import checkpoint


@dataclass(frozen=True)
class PlayerWorkerArgs:
    """Everything the player worker needs to know."""

    directory: Path  # of NAME.safetensors
    opponents: Mapping[str, Opponent]  # players without a network, by name
    bfloat16: bool
    device: str
    num_threads: int
    seed: int
    num_actors: int
    seats: Seats
    rows: SharedArrays  # of the slots
    channel: PolicyChannel
    counters: CounterRow


def player_worker(reports: Reports, args: PlayerWorkerArgs) -> None:
    """Body of the process."""
    configure(args.device, args.num_threads, deterministic=False)
    channel, counters = args.channel, args.counters
    players = _Players(args, reports)
    players.take_seats()
    reports.send("ready")
    while True:
        waiting_since = time.perf_counter()
        counters.waiting()
        try:
            groups = np.array(sorted(channel.look()), np.int64)
        except StopRequested:
            return
        counters.working()
        busy_since = time.perf_counter()
        players.take_seats()
        num_actions = players.act(groups)
        now = time.perf_counter()
        counters.add(steps=num_actions, calls=1, wait_s=busy_since - waiting_since, busy_s=now - busy_since)


class _Players:
    """Those that are in the seats."""

    def __init__(self, args: PlayerWorkerArgs, reports: Reports) -> None:
        self._args = args
        self._reports = reports
        self._seats = args.seats
        self._turns = [0] * args.seats.num_seats  # of the players that are here
        self._actors: dict[int, Actors] = {}  # by seat, of all actors of the run
        self._obs = args.rows.named(OBS)  # [num_slots, T+1, ...]
        self._keys = [key for key in self._obs if key != CLOCK]  # what an environment itself shows

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
                self._actors[seat] = self._load(name, turn)
            except (OSError, ValueError) as error:
                self._actors.pop(seat, None)
                self._seats.could_not_load(seat, turn)
                self._reports.send("player_failed", name=name, text=str(error))
            else:
                self._seats.has_loaded(seat, turn, time.perf_counter() - loading_since)
                self._reports.send("seated", seat=seat)

    def act(self, groups: np.ndarray) -> int:
        """Write the actions of the actors of `groups` [G] that seats play, and answer. Returns how many there were."""
        channel, rows = self._args.channel, self._args.rows
        numbers = channel.numbers(groups)
        num_actions = 0
        for seat, slots, t, numbers_of_actors in channel.rows_by_seat(groups, numbers):
            actors = rows["actor"][slots]  # [N]
            obs = {key: self._obs[key][slots, t] for key in self._keys}
            if seat not in self._actors:  # it has begun matches before a death, and its file is gone since
                continue
            actions = self._actors[seat].act(obs, rows["first"][slots, t], actors)
            asked = channel.still_asked(actors, numbers_of_actors)
            where = slots[asked], t[asked]
            rows["discrete"][where] = actions.discrete[asked]
            rows["continuous"][where] = actions.continuous[asked]
            # Nobody learns from these rows. A slot that a policy began may hold them behind its own.
            for name in ("log_prob", "value", "policy_version"):
                rows[name][where] = 0
            num_actions += len(actors)
        channel.answer(groups, numbers)
        return num_actions

    def _load(self, name: str, turn: int) -> Actors:
        args = self._args
        if name in args.opponents:
            return args.opponents[name].player().actors(args.num_actors, args.seed + turn)
        saved = checkpoint.load(args.directory / f"{name}.safetensors")
        device = str(gpu.torch_device(args.device))
        policy = TorchPolicy(saved, name, device, precision="bfloat16" if args.bfloat16 else "float32")
        return policy.actors(args.num_actors, args.seed + turn)
