"""Trajectory slots: the shared rows that rollout workers, policy workers and the learner write and read.

A slot is one actor for T steps with one policy. `sf.shared.rows` says what is in it, and this module how it travels.

Life of a slot: FREE -> FILLING -> FULL -> TRAINING -> FREE. Every slot belongs to one group of environments, whose
rollout worker alone takes it when it is FREE and makes it FULL; the learner alone takes it when it is FULL and makes it
FREE. `state` says which. A message only says "look at this slot", to a learner, or "look at this group", in the inbox
of its rollout worker. So one too many does no harm, and one that is missing, because a process died before it sent or
after it received it, can be sent again. FREE slots are the only throttle of the sampler. With several policies each has
a learner, which takes the slots of its policy. A slot of a player that does not learn (`sf.shared.seats`) is never
FULL: its rollout worker makes it FREE again.

Where the critic sees more than one agent, the slots of the agents of an environment stand side by side: they are taken
together, and none of them is filled again before all are FREE. So whoever takes one of them can read the rows of all,
also of those that other learners or players have. Such a set has one slot for each agent, in their order.

Learners count the env steps in the slots that they take. So what was in the hands of one that died, in slots that it
was copying or in batches that it had filled, is known: all that it had taken and not trained on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sf.envs import EnvSpec
from sf.shared.queues import PIPES, IndexQueue, Queues
from sf.shared.rows import slot_fields
from sf.system.arrays import Field, SharedArrays

FREE, FILLING, FULL, TRAINING = range(4)
_NOBODY, _PLAYERS, _OTHERS = range(3)  # beside a policy that learns: players that do not, or other policies that do


@dataclass(frozen=True)
class SlotPool:
    """All slots with the queues they travel in; what the parent holds.

    Slots of group g: slots_per_group from g x slots_per_group on. Groups of worker w: groups_per_worker from
    w x groups_per_worker on.
    """

    arrays: SharedArrays
    # `count` [P]: how many env steps the learners of a policy have taken; `after` [num_slots]: up to this slot.
    taken: SharedArrays
    inboxes: tuple[IndexQueue, ...]  # one a rollout worker: groups that have a free slot, or an answer
    full: tuple[IndexQueue, ...]  # one a policy: slots
    groups_per_worker: int
    slots_per_group: int
    actors_per_group: int
    has_seats: bool = False  # for players that do not learn, see `sf.shared.seats`
    num_together: int = 1  # slots that are taken together: 1, or one for each agent of an environment

    @classmethod
    def allocate(
        cls,
        spec: EnvSpec,
        rollout: int,
        *,
        inboxes: tuple[IndexQueue, ...],
        groups_per_worker: int,
        slots_per_group: int,
        actors_per_group: int,
        num_policies: int = 1,
        has_seats: bool = False,
        num_together: int = 1,
        queues: Queues = PIPES,
    ) -> SlotPool:
        assert slots_per_group % num_together == actors_per_group % num_together == 0
        num_slots = len(inboxes) * groups_per_worker * slots_per_group
        pool = cls(
            SharedArrays(slot_fields(spec, num_slots, rollout), name="sf-slots"),
            SharedArrays([Field("count", (num_policies,), np.int64), Field("after", (num_slots,), np.int64)]),
            inboxes,
            tuple(queues.make(2 * num_slots) for _ in range(num_policies)),
            groups_per_worker,
            slots_per_group,
            actors_per_group,
            has_seats,
            num_together,
        )
        pool.reset()
        return pool

    @property
    def num_slots(self) -> int:
        return len(self.arrays["state"])

    def of_worker(self) -> WorkerSlots:
        return WorkerSlots(self.arrays, self.full, self.slots_per_group, self.has_seats, self.num_together)

    def of_learner(self, policy_id: int = 0) -> LearnerSlots:
        return LearnerSlots(
            self.arrays,
            self.taken,
            self.inboxes,
            self.full[policy_id],
            self.groups_per_worker,
            self.slots_per_group,
            self.actors_per_group,
            policy_id,
            beside=_OTHERS if len(self.full) > 1 else _PLAYERS if self.has_seats else _NOBODY,
            num_together=self.num_together,
        )

    def can_go_on(self, group_idx: int) -> bool:
        """Whether a group has slots that it fills, or enough that are free to begin."""
        first = group_idx * self.slots_per_group
        state = self.arrays["state"][first : first + self.slots_per_group]
        return bool((state == FILLING).any() or len(_free(state, self.num_together)) >= self.actors_per_group)

    def env_steps_taken(self, policy_id: int = 0) -> int:
        """By all learners that this policy has had, those included that are lost because one of them died."""
        return int(self.taken["count"][policy_id])

    def reset(self) -> None:
        """All slots are free, and full ones are lost. Only while neither a rollout worker nor a learner lives."""
        state, policy = self.arrays["state"], self.arrays["policy"]
        for policy_id, queue in enumerate(self.full):
            self._count_what_was_being_taken(policy_id)
            full = np.flatnonzero((state == FULL) & (policy == policy_id)).tolist()
            self.taken["count"][policy_id] += self.arrays["env_steps"][full].sum()
            queue.drain()
        self.arrays["state"][:] = FREE
        for worker_idx in range(len(self.inboxes)):
            self.recover_worker(worker_idx)

    def recover_worker(self, worker_idx: int) -> None:
        """After the death of a rollout worker: what it was filling is free, what it had filled is not lost."""
        slots_per_worker = self.groups_per_worker * self.slots_per_group
        slots = range(worker_idx * slots_per_worker, (worker_idx + 1) * slots_per_worker)
        state = self.arrays["state"]
        was_filling = [slot for slot in slots if state[slot] == FILLING]
        state[was_filling] = FREE
        self.inboxes[worker_idx].drain()
        self._tell_of_free_slots(slots)
        _put_by_policy(self.full, self.arrays["policy"], (slot for slot in slots if state[slot] == FULL))
        if self.has_seats and was_filling:
            for full in self.full:  # a message of no use, since a learner may have counted on these slots
                full.put(was_filling[0])

    def recover_learner(self, policy_id: int = 0) -> None:
        """After the death of a learner: what it was copying is lost, what waits for it is not."""
        state, policy = self.arrays["state"], self.arrays["policy"]
        self._count_what_was_being_taken(policy_id)
        state[(state == TRAINING) & (policy == policy_id)] = FREE
        self.full[policy_id].drain()
        self.full[policy_id].put_many(np.flatnonzero((state == FULL) & (policy == policy_id)).tolist())
        self._tell_of_free_slots(range(self.num_slots))

    def _tell_of_free_slots(self, slots: Iterable[int]) -> None:
        state = self.arrays["state"]
        groups = (slot // self.slots_per_group for slot in slots if state[slot] == FREE)
        _put_by_worker(self.inboxes, self.groups_per_worker, groups)

    def _count_what_was_being_taken(self, policy_id: int) -> None:
        """A learner that died between taking a slot and counting it has left the sum in the slot."""
        is_held = (self.arrays["state"] == TRAINING) & (self.arrays["policy"] == policy_id)
        count = self.taken["count"]
        count[policy_id] = max(int(count[policy_id]), int(self.taken["after"][is_held].max(initial=0)))


@dataclass(frozen=True)
class WorkerSlots:
    """The side of a rollout worker."""

    arrays: SharedArrays
    full: tuple[IndexQueue, ...]
    slots_per_group: int
    has_seats: bool = False
    num_together: int = 1

    def take(self, group_idx: int, count: int, policy: np.ndarray | None = None) -> list[int]:
        """So many free slots of a group of this worker, in ascending order; none where there are fewer.

        policy: [count] whose they are; None: as before. It is written first: learners count what is begun for them.
        """
        first = group_idx * self.slots_per_group
        state = self.arrays["state"]
        free = (first + _free(state[first : first + self.slots_per_group], self.num_together)).tolist()
        if len(free) < count:
            return []
        if policy is not None:
            self.arrays["policy"][free[:count]] = policy
        state[free[:count]] = FILLING
        return free[:count]

    def hand_over(self, slots: list[int]) -> int:
        """Give filled slots to the learners of their policies. Those of players that do not learn are free again.

        Returns the env steps in these.
        """
        state, policy = self.arrays["state"], self.arrays["policy"]
        of_players = [slot for slot in slots if policy[slot] >= len(self.full)] if self.has_seats else []
        env_steps_of_players = int(self.arrays["env_steps"][of_players].sum())
        state[of_players] = FREE
        slots = [slot for slot in slots if slot not in of_players] if of_players else slots
        state[slots] = FULL
        _put_by_policy(self.full, policy, slots)
        return env_steps_of_players


@dataclass(frozen=True)
class LearnerSlots:
    """The side of a learner."""

    arrays: SharedArrays
    taken: SharedArrays  # see SlotPool
    inboxes: tuple[IndexQueue, ...]
    full: IndexQueue
    groups_per_worker: int
    slots_per_group: int
    actors_per_group: int
    policy_id: int
    beside: int  # who plays beside its policy: one of the names above
    num_together: int = 1

    def take(self, at_most: int) -> list[int]:
        """Filled slots, oldest first; waits for the first. Raises StopRequested.

        With the first slot of an environment come those of all of its agents, in their order, the ones of other
        policies and of players included: they are to be read only.

        Beside players it gives none where the messages were of no use: the supply may be another from then on.
        """
        state, policy = self.arrays["state"], self.arrays["policy"]
        count, after = self.taken["count"], self.taken["after"]
        taken: list[int] = []
        while not taken:
            for message in self.full.get_many(max(1, at_most // self.num_together)):
                first = message - message % self.num_together
                together = range(first, first + self.num_together)
                # A repeated message is dropped: the slot is no longer FULL.
                own = [slot for slot in together if state[slot] == FULL and policy[slot] == self.policy_id]
                for slot in own:
                    after[slot] = count[self.policy_id] + self.arrays["env_steps"][slot]
                    state[slot] = TRAINING
                    count[self.policy_id] = after[slot]
                if own:
                    taken += together
            if self.beside == _PLAYERS:
                break
        return taken

    def supply_beside(self, held: Iterable[int]) -> int:
        """How many slots rollout workers can surely fill for this learner while `held` are not given back.

        Another learner may hold what they need for it as long as it likes, so beside others that is none. Beside
        players it is what is begun, as the next slots may be for any of them. Where a worker dies that has begun some,
        it is less from then on, and `take` ends its wait.
        """
        if self.beside == _OTHERS:
            return 0
        if self.beside == _PLAYERS:
            state = self.arrays["state"]
            is_begun = (state == FILLING) | (state == FULL)  # before the policy is read, which was written before
            is_coming = (is_begun & (self.arrays["policy"] == self.policy_id)).reshape(-1, self.num_together)
            return int(np.count_nonzero(is_coming.any(axis=1))) * self.num_together
        num_groups = len(self.arrays["state"]) // self.slots_per_group
        held_per_group = np.bincount([slot // self.slots_per_group for slot in held], minlength=num_groups)
        rollouts = (self.slots_per_group - held_per_group) // self.actors_per_group
        return int(rollouts.sum()) * self.actors_per_group

    def is_own(self, slots: list[int]) -> np.ndarray:
        """Returns [len(slots)] bool: which of the slots that `take` gave are of this policy."""
        is_own: np.ndarray = self.arrays["policy"][slots] == self.policy_id
        return is_own

    def env_steps(self, slots: list[int]) -> int:
        """Returns the env steps of this policy in slots that `take` gave."""
        return int(self.arrays["env_steps"][slots][self.is_own(slots)].sum())

    def give_back(self, slots: Iterable[int]) -> None:
        """Return slots whose data has been copied."""
        slots = list(slots)
        if self.num_together > 1:
            slots = [slot for slot, is_own in zip(slots, self.is_own(slots), strict=True) if is_own]
        self.arrays["state"][slots] = FREE
        _put_by_worker(self.inboxes, self.groups_per_worker, (slot // self.slots_per_group for slot in slots))


def _free(state: np.ndarray, num_together: int) -> np.ndarray:
    """Returns the indices of the slots that can be taken, ascending. state: of the slots of a group."""
    is_free = (state == FREE).reshape(-1, num_together).all(axis=1)
    return np.flatnonzero(np.repeat(is_free, num_together))


def _put_by_worker(inboxes: tuple[IndexQueue, ...], groups_per_worker: int, groups: Iterable[int]) -> None:
    """Tell the workers of these groups to look at them, once each."""
    by_worker: dict[int, list[int]] = {}
    for group_idx in dict.fromkeys(groups):
        by_worker.setdefault(group_idx // groups_per_worker, []).append(group_idx)
    for worker_idx, own in by_worker.items():
        inboxes[worker_idx].put_many(own)


def _put_by_policy(queues: tuple[IndexQueue, ...], policy: np.ndarray, slots: Iterable[int]) -> None:
    """Send each slot to the queue of its policy. policy: [num_slots]."""
    slots = list(slots)
    if len(queues) == 1:
        queues[0].put_many(slots)
        return
    for policy_id, queue in enumerate(queues):
        queue.put_many(slot for slot in slots if policy[slot] == policy_id)
