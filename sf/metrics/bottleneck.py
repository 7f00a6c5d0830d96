"""One sentence: which part of a run holds the others up, and which flag to change.

The cases, and how each shows:

slow          No iteration of the learner has ended within the window, and rollout workers never wait: steps take long.
starting      Nothing has been trained on yet, or the learner has died and its successor starts.
ranks         Of several learners of one policy, one comes later than the others, which wait for it.
learner       Rollout workers wait for free slots, and the learner never waits. Slots are the only throttle of the
              sampler, and come back at the pace of the learner.
turns         Synchronous training: the sampler waits for slots while the learner trains, then the learner waits for
              data. That is how this mode works.
cores         No core is idle, and this run has most of them: its parts slow each other down. Their waits mean little,
              because a part that waits for a core counts as busy. So the kernel tells which part uses the cores.
              Where other programs have most of them, the sentence says so beside the case that applies.
uneven        Asynchronous training: rollout workers wait for slots, and the learner for data. A batch waits for its
              last trajectories, while workers that delivered theirs have no slot to go on with.
players       Rollout workers wait for actions, and the player worker does not wait. There is one for all players that
              do not learn.
inference     Rollout workers wait for actions, and policy workers do not wait: requests queue up.
latency       Rollout workers wait for actions, and policy workers wait, too: the messages between them take the time.
              There is one for each step of a group, however many environments the group has.
environments  Rollout workers never wait, and all others wait for them.
balanced      None of these.

The rules are tried in this order. The first that applies gives the sentence. It names first what costs nothing, such as
larger batches, and a GPU last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_NOTABLE = 0.2  # a share of time that is worth a word
_MOST = 0.75
_MINUTE_S = 55.0
_FULL = 0.92  # cores that are in use for more of the time than this leave nothing to gain
_PARTS = {"rollout": "environments", "policy": "inference", "player": "players", "learner": "learner"}
_FEWER_PLAYERS = ("a lower --past_share", "fewer --seats")


@dataclass(frozen=True)
class RanksLoad:
    """Says who waits for whom among several learners of one policy.

    slowest: the rank that waits least, on machine `host`. wait_share, slowest_wait_share: of the time of the others,
    and of its own, that goes by in waiting for other ranks, from 0 to 1. bottleneck: the sentence of the slowest on
    itself; empty where it is the one that asks.
    """

    slowest: int
    host: str
    wait_share: float
    slowest_wait_share: float
    bottleneck: str


@dataclass(frozen=True)
class Load:
    """Shares of time, 0 to 1, over the last minute or so; means over the processes of a role.

    learner_busy, learner_wait: of the busiest learner, since the slowest sets the pace of all. has_iteration: whether
    one of it has ended meanwhile. slot_wait: of rollout workers, for slots; rollout_wait: for actions. player_busy: of
    the player worker; 0 without one. actions_per_batch: of one forward pass of a policy worker.
    cores_in_use: share of the cores that this program may use, by all programs. cores: how many of them each role keeps
    busy, simulators included.
    """

    rollout_busy: float
    rollout_wait: float
    slot_wait: float
    policy_busy: float
    policy_wait: float
    learner_busy: float
    learner_wait: float
    actions_per_batch: float
    cores_in_use: float
    cores: dict[str, float]
    num_cores: int
    player_busy: float = 0.0
    has_iteration: bool = True
    num_epochs: int = 1
    is_on_gpu: bool = False
    is_synchronous: bool = False
    now: Mapping[str, int] = field(default_factory=dict)  # flags that the sentence may change, by name
    ranks: RanksLoad | None = None  # where there are several
    window_s: float = 60.0  # that all of this is over; less after the first update

    @property
    def is_full(self) -> bool:
        return self.cores_in_use > _FULL

    @property
    def is_crowded(self) -> bool:
        """Returns whether no core is idle, and other programs have most of them."""
        return self.is_full and self.of_others > self.num_cores / 2

    @property
    def of_others(self) -> float:
        """Returns how many cores other programs use."""
        return max(0.0, self.cores_in_use * self.num_cores - sum(self.cores.values()))


def bottleneck(load: Load | None) -> str:
    """Returns the sentence. load: None before anything was trained on."""
    if load is None:
        return "starting: nothing has been trained on yet"
    sentence = _without_training(load)
    ranks = load.ranks
    if not sentence and ranks is not None and ranks.wait_share - ranks.slowest_wait_share > _NOTABLE:
        return (
            f"rank {ranks.slowest} on {ranks.host} is the slowest, the learners of the others wait "
            f"{_percent(ranks.wait_share)} of their time for it; there: "
            f"{ranks.bottleneck or bottleneck(replace(load, ranks=None))}"
        )
    others = f"; other programs use {load.of_others:.1f} of {load.num_cores} cores" if load.is_crowded else ""
    return (sentence or _learner(load) or _cores(load) or _sampler(load)) + others


def _without_training(load: Load) -> str:
    """The cases `slow` and `starting`."""
    window = "minute" if load.window_s >= _MINUTE_S else f"{max(1.0, load.window_s):.0f} s"
    if not load.has_iteration and load.rollout_busy > _MOST:
        cores = f"{_larger(load, 'num_workers')} ({_percent(load.cores_in_use)} of the cores are in use), or "
        return (
            f"rollout workers busy {_percent(load.rollout_busy)}, and the learner has ended no iteration within the "
            f"last {window}: try {'' if load.is_full else cores}a lower --num_batches_per_epoch, for more updates of "
            "fewer steps"
        )
    if load.learner_busy + load.learner_wait < 0.01:
        return f"not known: the learner has not run within the last {window}"
    return ""


def _learner(load: Load) -> str:
    """The cases `learner` and `turns`."""
    if load.slot_wait <= _NOTABLE:
        return ""
    if load.is_synchronous:
        return (
            f"synchronous: sampler and learner take turns (the learner is busy {_percent(load.learner_busy)}): "
            "--async_rl true lets both work at once"
        )
    if load.learner_busy <= _MOST:
        return ""
    threads = [] if load.is_full or load.is_on_gpu else ["more --learner_threads"]
    return (
        f"learner busy {_percent(load.learner_busy)}, rollout workers wait {_percent(load.slot_wait)} of their time "
        f"for it: try {_one_of(*threads, _larger(load, 'batch_size'), _less_training(load), *_less_work(load))}"
    )


def _cores(load: Load) -> str:
    if not load.is_full or load.is_crowded:
        return ""
    shares = [f"{name} {load.cores[role]:.1f}" for role, name in _PARTS.items() if role in load.cores]
    if load.of_others > _NOTABLE * load.num_cores:
        shares.append(f"other programs {load.of_others:.1f}")
    most = max(load.cores, key=load.cores.__getitem__)
    if most == "rollout":
        remedies = "more cores, or a faster environment"
    elif most == "player":
        remedies = _one_of(*_FEWER_PLAYERS, "more cores")
    elif load.is_on_gpu:
        remedies = "more cores, or a smaller model"
    else:
        more_envs = _larger(load, "num_envs_per_worker")
        turns = [_larger(load, "batch_size"), _less_training(load)] if most == "learner" else [more_envs]
        remedies = _one_of(*turns, "a smaller model", "more cores", "a GPU")
    return f"the cores are all in use ({', '.join(shares)} of {load.num_cores}): try {remedies}"


def _sampler(load: Load) -> str:
    """The cases from `uneven` on."""
    waits_for_actions = f"rollout workers wait {_percent(load.rollout_wait)} of their time for"
    if load.slot_wait > max(_NOTABLE, load.rollout_wait) and load.learner_wait > _NOTABLE:
        return (
            f"rollout workers wait {_percent(load.slot_wait)} of their time for slots while the learner waits "
            f"{_percent(load.learner_wait)} of its for data: --extra_slots evens it out, at the cost of lag"
        )
    if load.rollout_wait > _NOTABLE and load.player_busy > max(_MOST, load.policy_busy):
        remedies = _one_of(_larger(load, "num_envs_per_worker"), *_FEWER_PLAYERS)
        return f"player worker busy {_percent(load.player_busy)}, {waits_for_actions} actions: try {remedies}"
    if load.rollout_wait > _NOTABLE and load.policy_busy > _MOST:
        more = _larger(load, "num_envs_per_worker"), _larger(load, "policy_workers_per_policy")
        remedies = _one_of(*more, *_less_work(load))
        return f"inference busy {_percent(load.policy_busy)}, {waits_for_actions} it: try {remedies}"
    if load.rollout_wait > _NOTABLE:
        return (
            f"{waits_for_actions} actions, and inference, which works on batches of {load.actions_per_batch:.1f}, is "
            f"busy only {_percent(load.policy_busy)}: try {_larger(load, 'num_envs_per_worker')}"
        )
    if load.rollout_busy > _MOST and load.learner_wait > _NOTABLE:
        return (
            f"rollout workers busy {_percent(load.rollout_busy)}, the learner waits {_percent(load.learner_wait)} of "
            f"its time for them, {_percent(load.cores_in_use)} of the cores are in use: try "
            f"{_larger(load, 'num_workers')}"
        )
    return "none: no part waits much for another"


def _less_training(load: Load) -> str:
    if load.num_epochs > 1:
        return f"--num_epochs {load.num_epochs // 2} (now {load.num_epochs})"
    return "fewer --num_workers"


def _larger(load: Load, flag: str) -> str:
    """Returns the flag with twice its value, where that is known."""
    value = load.now.get(flag)
    if value is not None:
        return f"--{flag} {2 * value} (now {value})"
    return "a larger --batch_size" if flag == "batch_size" else f"more --{flag}"


def _less_work(load: Load) -> list[str]:
    return ["a smaller model"] if load.is_on_gpu else ["a smaller model", "a GPU"]


def _one_of(*remedies: str) -> str:
    *others, last = remedies
    return f"{', '.join(others)} or {last}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
