"""Kinds of agents: those of one environment whose observations or actions differ, in rows of the same shape.

Agents with equal spaces are one kind. Rows have the union of the spaces of all kinds (`sf.envs.spaces.unions`), and so
has a policy that plays all of them; for others see `sf.envs.groups.policy_spec`. What a kind lacks is zeros in its
observations. An `action_mask` forbids the choices that it lacks, a `continuous_mask` says which numbers it has, and
`agent_kind` tells the network which kind it plays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import ObsRows
from sf.envs.groups import calls
from sf.envs.spaces.actions import (
    ACTION_MASK,
    CONTINUOUS_MASK,
    ActionSpec,
    decoder,
    require_action_mask,
    supported_action_space,
)
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.observations import LOOK_EVERY, ObsWriter
from sf.envs.spaces.reading_back import action_encoder, obs_reader
from sf.envs.spaces.unions import union_of_actions, union_of_observations

AGENT_KIND = "agent_kind"
"""The name of the observation that says which kind an agent is: [K] float32, one-hot. Only where kinds differ."""


@dataclass(frozen=True)
class Kind:
    """Writes what agents of one kind see into the rows of a group, and reads their actions.

    write, check_bounds: as those of `sf.envs.spaces.observations.ObsWriter`. decode: a function of discrete [D] and
    continuous [C] that returns an action of the kind's own space.
    """

    write: Callable[[Any, ObsRows, int], None]
    check_bounds: Callable[[ObsRows, int], None]
    decode: Callable[[np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class AgentSpaces:
    """The spaces of all agents of an environment.

    obs, env_obs, action: see `sf.envs.EnvSpec`. numbers: [A] the kind of each agent, and own: [K] the spaces of each
    kind; both () if all agents are alike. of_agents: [A].
    """

    obs: gym.spaces.Dict
    env_obs: gym.Space
    action: gym.Space
    numbers: tuple[int, ...]
    own: tuple[tuple[gym.Space, gym.Space], ...]
    of_agents: Sequence[Kind]

    @classmethod
    def of(cls, env_id: str, env: Any, agents: Sequence[Any], strict: bool) -> AgentSpaces:
        """env: has PettingZoo's `observation_space(agent)` and `action_space(agent)`. strict: see `ObsWriter`.

        Raises UsageError for spaces that are not supported, and for observations that no row can hold together.
        """
        spaces: list[tuple[gym.Space, gym.Space]] = []  # of each kind: of observations and actions
        firsts: list[Any] = []  # an agent of each kind
        numbers = []
        for agent in agents:
            obs_space, action_space = (
                calls.space(env_id, env, f"{of}_space", agent) for of in ("observation", "action")
            )
            own = obs_space, action_space
            if own not in spaces:
                spaces.append(own)
                firsts.append(agent)
            numbers.append(spaces.index(own))
        if len(spaces) == 1:
            writer = ObsWriter(env_id, spaces[0][0], strict, LOOK_EVERY)
            action = supported_action_space(env_id, spaces[0][1])
            kind = Kind(writer.write, writer.check_bounds, decoder(action))
            return cls(writer.space, writer.env_space, action, (), (), [kind] * len(agents))
        names = [f"{env_id} (agents like {agent!r})" for agent in firsts]
        writers = [ObsWriter(name, own, strict, LOOK_EVERY) for name, (own, _) in zip(names, spaces, strict=True)]
        actions = [supported_action_space(name, own) for name, (_, own) in zip(names, spaces, strict=True)]
        union = UnionOfKinds(env_id, writers, actions, firsts)
        kinds = []
        for number, (writer, action) in enumerate(zip(writers, actions, strict=True)):
            try:
                part = _KindOfSeveral(union, number, writer, action)
            except UsageError as error:
                raise UsageError(f"{names[number]}: {error}") from None
            kinds.append(Kind(part.write, part.check_bounds, part.decode))
        of_kinds = tuple(zip((writer.env_space for writer in writers), actions, strict=True))
        of_agents = [kinds[number] for number in numbers]
        return cls(union.obs, union.obs, union.action, tuple(numbers), of_kinds, of_agents)


class UnionOfKinds:
    """The spaces of several kinds as one. obs: with the masks and `agent_kind`."""

    def __init__(
        self, env_id: str, writers: Sequence[ObsWriter], actions: Sequence[gym.Space], firsts: Sequence[Any]
    ) -> None:
        """writers, actions: of each kind. firsts: an agent of each, for sentences."""
        for writer in writers:
            for key in (AGENT_KIND, CONTINUOUS_MASK):
                if key in writer.space.spaces:
                    raise UsageError(
                        f"{env_id} has an observation called {key!r}, which is added where agents differ: rename it"
                    )
        self.action = union_of_actions(actions)
        self.spec = ActionSpec.of(self.action)
        self.num_kinds = len(writers)
        own: Any = [{key: box for key, box in writer.space.items() if key != ACTION_MASK} for writer in writers]
        boxes: dict[str, gym.Space] = {**union_of_observations(env_id, own, firsts)}
        boxes[AGENT_KIND] = Identity(self.num_kinds)
        sizes = {ActionSpec.of(action).discrete_sizes for action in actions}
        if len(sizes) > 1 or any(ACTION_MASK in writer.space.spaces for writer in writers):
            boxes[ACTION_MASK] = gym.spaces.Box(0, 1, (sum(self.spec.discrete_sizes),), np.int8)
        if self.spec.is_partial:
            boxes[CONTINUOUS_MASK] = gym.spaces.Box(0, 1, (self.spec.num_continuous,), np.int8)
        self.obs = gym.spaces.Dict(boxes)


class _KindOfSeveral:
    """A `Kind` whose rows are those of a union."""

    def __init__(self, union: UnionOfKinds, number: int, writer: ObsWriter, action: gym.Space) -> None:
        """Raises UsageError for an action mask that does not fit the kind's own actions."""
        spec = ActionSpec.of(action)
        self._writer = writer
        constants = {AGENT_KIND: np.eye(union.num_kinds, dtype=np.float32)[number]}
        if CONTINUOUS_MASK in union.obs.spaces:
            has = np.arange(union.spec.num_continuous) < spec.num_continuous
            constants[CONTINUOUS_MASK] = has.astype(np.int8)
        self._mask: WidenedMask | None = None
        if ACTION_MASK in union.obs.spaces:
            mask = _widened_mask(union.spec.discrete_sizes, spec.discrete_sizes, writer.space.get(ACTION_MASK))
            if ACTION_MASK in writer.space.spaces:
                self._mask = mask
            else:
                constants[ACTION_MASK] = np.zeros(sum(union.spec.discrete_sizes), np.int8)
                mask.write(constants[ACTION_MASK])
        own = {key: box.shape for key, box in writer.space.items()}
        self._shapes = [(key, own.get(key)) for key in union.obs if key not in {ACTION_MASK, *constants}]
        self._constants = [*constants.items()]
        self._decode = decoder(action)
        self._num_heads, self._num_continuous = len(spec.discrete_sizes), spec.num_continuous

    def write(self, obs: Any, rows: ObsRows, n: int) -> None:
        for key, constant in self._constants:
            rows[key][n][...] = constant
        self._writer.write(obs, self._own_rows(rows, n), 0)
        if self._mask is not None:
            self._mask.write(rows[ACTION_MASK][n])

    def check_bounds(self, rows: ObsRows, n: int) -> None:
        self._writer.check_bounds(self._own_rows(rows, n), 0)

    def decode(self, discrete: np.ndarray, continuous: np.ndarray) -> Any:
        return self._decode(discrete[: self._num_heads], continuous[: self._num_continuous])

    def _own_rows(self, rows: ObsRows, n: int) -> dict[str, tuple[np.ndarray]]:
        """Returns where the kind's own observations of actor n go, as rows of one actor. All other numbers become 0."""
        own = {} if self._mask is None else {ACTION_MASK: (self._mask.own,)}
        for key, shape in self._shapes:
            row = rows[key][n]
            if shape is None:
                row[...] = 0
            elif shape == row.shape:
                own[key] = (row,)
            else:  # a vector that is shorter than that of another kind
                row[shape[0] :] = 0
                own[key] = (row[: shape[0]],)
        return own


class WidenedMask:
    """The action mask of a kind among the choices of all kinds.

    own: the mask that the environment gives the kind; all ones where it gives none. A head that the kind lacks has
    its first choice alone, or none while the agent waits for its turn.
    """

    def __init__(self, places: np.ndarray, lacking: np.ndarray, box: gym.Space | None) -> None:
        """places: of the kind's choices among those of all kinds. lacking: of the first choices of heads that it lacks.
        box: of the environment's mask. Raises UsageError where it does not fit."""
        if box is not None:
            require_action_mask(box, len(places))
        self.own = np.ones(len(places), np.int8) if box is None else np.zeros(box.shape or (), box.dtype)
        self._places = places
        self._lacking = lacking

    def write(self, row: np.ndarray) -> None:
        allowed = self.own.ravel() != 0
        row[...] = 0
        row[self._places] = allowed
        row[self._lacking] = allowed.any() or not len(allowed)


def _widened_mask(sizes: Sequence[int], own_sizes: Sequence[int], box: gym.Space | None) -> WidenedMask:
    """sizes: of the heads of all kinds."""
    return WidenedMask(_places(sizes, own_sizes), np.cumsum([0, *sizes])[len(own_sizes) : -1], box)


def _places(sizes: Sequence[int], own_sizes: Sequence[int]) -> np.ndarray:
    """Returns which choices of the heads of all kinds are those of a kind."""
    starts = np.cumsum([0, *sizes])
    places = [start + np.arange(size) for start, size in zip(starts, own_sizes, strict=False)]
    return np.concatenate([np.zeros(0, np.int64), *places])


class OwnForm:
    """The way back from the rows of all kinds: an observation and an action of one kind, as the environment has them.

    For players that are written against the environment, see `sf.envs.spaces.reading_back`.
    """

    def __init__(self, env_id: str, obs_space: gym.Space, action_space: gym.Space, union: gym.Space) -> None:
        """union: the action space of all kinds."""
        own, spec = ActionSpec.of(action_space), ActionSpec.of(union)
        self._shapes = {key: box.shape or () for key, box in ObsWriter(env_id, obs_space).space.items()}
        self._places = _places(spec.discrete_sizes, own.discrete_sizes)
        self._read, self._encode = obs_reader(obs_space), action_encoder(action_space)
        self._sizes = len(spec.discrete_sizes), spec.num_continuous

    def read(self, rows: Mapping[str, np.ndarray]) -> Any:
        """rows: of one actor, {key: [...]}."""
        own = {key: rows[key][tuple(map(slice, shape))] for key, shape in self._shapes.items() if key != ACTION_MASK}
        if ACTION_MASK in self._shapes:
            own[ACTION_MASK] = rows[ACTION_MASK][self._places].reshape(self._shapes[ACTION_MASK])
        return self._read(own)

    def encode(self, action: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the discrete [D] and continuous [C] numbers. Raises UsageError for what is no action of the kind."""
        discrete, continuous = (np.zeros(size, kind) for size, kind in zip(self._sizes, ("i4", "f4"), strict=True))
        own_discrete, own_continuous = self._encode(action)
        discrete[: len(own_discrete)], continuous[: len(own_continuous)] = own_discrete, own_continuous
        return discrete, continuous
