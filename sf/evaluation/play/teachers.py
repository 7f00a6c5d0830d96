"""Has players say what they would do, for a policy that learns from them (`--teacher`).

What a teacher says is a row of parameters of the policy's distribution over actions (`sf.model.distributions`). Of a
player without probabilities, the action that it would take has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import gymnasium as gym
import numpy as np
import torch

from sf.envs.added.clock import CLOCK
from sf.envs.group import ADVICE
from sf.envs.spaces.actions import ActionSpec
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.player import Obs
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.model.acting import ActingHere, AnyActing, Saying
from sf.model.compiled_acting import saying_of
from sf.model.distributions import IMPOSSIBLE
from sf.storage import checkpoint


class Teacher(Protocol):
    """Answers for N actors, each with a memory of its own where the teacher has one."""

    def params(self, obs: Obs, first: np.ndarray, who: np.ndarray) -> np.ndarray:
        """Returns parameters [M, P] float32 for M of the actors. first: [M] bool, whether an episode begins. who: [M]
        positions of the actors."""
        ...

    def close(self) -> None:
        """Ends what it has begun."""
        ...


@dataclass(frozen=True)
class Adviser:
    """Is a bot of the simulator, which says in an observation what it would do: see `sf.envs.group.ADVICE`."""

    name: str

    def params(self, obs: Obs, first: np.ndarray, who: np.ndarray) -> np.ndarray:
        return np.where(obs[ADVICE + self.name] > 0, np.float32(0.0), np.float32(IMPOSSIBLE))

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Teachers:
    """Describes the teachers of a run to another process. each: the file of a policy, or another player."""

    each: Sequence[Path | Opponent | Adviser]

    def here(self, num_actors: int, seed: int, device: str, bfloat16: bool, compiles: bool) -> Teacher:
        """Returns all of them as one: actor n has the one with number n modulo their number. compiles: their networks,
        where that can be."""
        made: list[Teacher] = []
        for number, source in enumerate(self.each):
            if isinstance(source, Adviser):
                made.append(source)
            elif isinstance(source, Opponent):
                made.append(_Scripted(source, num_actors, seed + number))
            else:
                saved, name = checkpoint.load(source), str(source)
                policy = TorchPolicy(saved, name, device, precision="bfloat16" if bfloat16 else "float32")
                made.append(_Trained(policy, num_actors, bfloat16, compiles))
        return made[0] if len(made) == 1 else _InTurn(made)


class _Trained:
    """Says the probabilities of a policy."""

    def __init__(self, policy: TorchPolicy, num_actors: int, bfloat16: bool, compiles: bool) -> None:
        self._policy = policy
        self._keys = list(policy.flat_obs_space)
        model, seen = policy.config.model, dict(policy.flat_obs_space.spaces)
        if model.critic_clock is True:
            seen[CLOCK] = gym.spaces.Box(0.0, np.inf, (1,), np.float32)
        self._saying: AnyActing = ActingHere(Saying(policy.network))
        if compiles:
            saying = policy.network, model, gym.spaces.Dict(seen), bfloat16, policy.device.type, "a teacher"
            self._saying = saying_of(*saying)
        self._state = torch.zeros(num_actors, policy.network.state_size, device=policy.device)

    def params(self, obs: Obs, first: np.ndarray, who: np.ndarray) -> np.ndarray:
        device = self._policy.device
        idxs = torch.from_numpy(who).to(device)
        seen = {key: torch.from_numpy(obs[key]).to(device) for key in self._keys}
        if self._policy.config.model.critic_clock is True:  # no value is wanted
            seen[CLOCK] = torch.zeros(len(who), 1, device=device)
        self._saying.look()
        with torch.inference_mode():
            params, self._state[idxs] = self._saying(seen, self._state[idxs], torch.from_numpy(first).to(device))
            found: np.ndarray = params.cpu().numpy()
        return found

    def close(self) -> None:
        self._saying.close()


class _Scripted:
    """Says the actions of a player that has no probabilities, all of which are choices."""

    def __init__(self, opponent: Opponent, num_actors: int, seed: int) -> None:
        self._actors = opponent.player().actors(num_actors, seed)
        self._sizes = ActionSpec.of(opponent.action_space).discrete_sizes

    def params(self, obs: Obs, first: np.ndarray, who: np.ndarray) -> np.ndarray:
        discrete = self._actors.act(obs, first, who).discrete
        found = np.full((len(who), sum(self._sizes)), IMPOSSIBLE, np.float32)
        starts = np.cumsum([0, *self._sizes[:-1]])
        np.put_along_axis(found, discrete + starts, 0.0, axis=1)
        return found

    def close(self) -> None:
        pass


class _InTurn:
    """Asks several teachers, each for its actors."""

    def __init__(self, teachers: Sequence[Teacher]) -> None:
        self._teachers = teachers

    def params(self, obs: Obs, first: np.ndarray, who: np.ndarray) -> np.ndarray:
        found: np.ndarray | None = None
        for number, teacher in enumerate(self._teachers):
            own = np.flatnonzero(who % len(self._teachers) == number)
            if len(own):
                said = teacher.params({key: rows[own] for key, rows in obs.items()}, first[own], who[own])
                found = np.zeros((len(who), said.shape[1]), np.float32) if found is None else found
                found[own] = said
        assert found is not None
        return found

    def close(self) -> None:
        for teacher in self._teachers:
            teacher.close()
