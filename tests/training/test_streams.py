"""All that a learner is given of an actor, row by row, is what a slow loop over its environment gives for the same
actions: single environments, vector environments in each way of resetting, matches, and games by turns.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any, NamedTuple

import ends
import numpy as np
import pytest
import torch
from counting import counting_policy_worker
from mortal import NUM_DEATHS, die_at_a_line, mortal_rollout_worker
from runs import DEVICE, QUEUES

from sf.config import Config
from sf.envs.toys.matches import CountingMatch
from sf.learner.batches import choice
from sf.learner.batches.loaders import SlotCopier
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished
from sf.system.processes.torch_runtime import configure

ROWS_OF_EACH = 120
STEP_FIELDS = ("discrete", "value", "policy_version", "reward", "terminated", "valid")


class Row(NamedTuple):
    """What one actor sees, and what its action causes there."""

    obs: Any
    first: bool
    reward: float = 0.0
    terminated: bool = False
    valid: bool = False


class NotingCopier(SlotCopier):
    """Knows whose slots it has copied, in the order of the columns of all batches."""

    def __init__(self, slots, states, spec):
        super().__init__(slots, states, spec)
        self._actor = slots.arrays["actor"]
        self.actors = []

    def copy(self, slots, batch, first_column):
        self.actors += self._actor[slots].tolist()
        super().copy(slots, batch, first_column)


def recording_learner(reports, args):
    """Writes batches to a file in the place of training on them."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    memory = SharedWeights.create(args.weights)
    memory.publish(torch.ones(1), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    copiers = []

    def noting_copier(*its_args):
        copiers.append(NotingCopier(*its_args))
        return copiers[-1]

    choice.SlotCopier = noting_copier
    loader = choice.make_loader(args, memory)
    recorded = defaultdict(list)
    rollout, version, num_rows = args.config.rollout, 1, np.zeros(args.num_actors, int)
    while num_rows.min() < ROWS_OF_EACH:
        batch = loader.next()
        for name in STEP_FIELDS:
            recorded[name].append(getattr(batch, name).numpy().copy())
        recorded["first"].append(batch.first.numpy().copy())
        recorded["state"].append(batch.state.numpy().copy())
        for key, values in batch.obs.items():
            recorded[f"obs/{key}"].append(values.numpy().copy())
        num_columns = sum(columns.shape[1] for columns in recorded["reward"])
        num_rows = rollout * np.bincount(copiers[0].actors[:num_columns], minlength=args.num_actors)
        version += 1
        memory.publish(torch.ones(1), version)
        memory.flush()
        loader.release()
    joined = {name: np.concatenate(parts, axis=0 if name == "state" else 1) for name, parts in recorded.items()}
    np.savez(args.checkpoints / "batches.npz", actor=copiers[0].actors[:num_columns], **joined)
    reports.send(LearnerFinished(0))


def mortal_policy_worker(reports, args):
    num_before = int(args.counters.get("rows"))  # which policy workers do not count themselves
    args.counters.add(rows=1)
    if num_before < NUM_DEATHS:
        die_at_a_line((args.idx, num_before))
    counting_policy_worker(reports, args)


def trajectories_of(tmp_path, env, bodies=None, num_deaths=0, **flags):
    """Of each actor, its trajectories in the order in which they came, each a dict of fields."""
    config = Config().replace(
        env=env,
        train_dir=str(tmp_path),
        model="counting",
        decorrelate_episodes=False,
        bootstrap_truncated=True,
        device=DEVICE,
        queues=QUEUES,
        **flags,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    bodies = {"policy": counting_policy_worker, "learner": recording_learner} | (bodies or {})
    summary = Run(make_plan(config), run_dir, bodies=bodies).run()
    assert (summary["restarts"], summary["env_faults"]) == (num_deaths, 0)
    of_actors = defaultdict(list)
    with np.load(run_dir.checkpoints / "batches.npz") as file:
        batches = dict(file)
    for column, actor in enumerate(batches.pop("actor").tolist()):
        state = batches["state"][column]
        of_actors[actor].append(
            {name: a[:, column] for name, a in batches.items() if name != "state"} | {"state": state}
        )
    return of_actors


def actions_of(trajectories):
    return np.concatenate([trajectory["discrete"][:, 0] for trajectory in trajectories]).tolist()


def assert_same(trajectories, expected):
    """expected: a `Row` of each step, and one more that is seen then."""
    rows, start, value = list(expected), 0, 0
    for trajectory in trajectories:
        num_steps = len(trajectory["reward"])
        own = rows[start : start + num_steps + 1]
        assert trajectory["first"].tolist() == [row.first for row in own]
        for t, row in enumerate(own):  # row T of a trajectory is row 0 of the next
            seen = row.obs if isinstance(row.obs, dict) else {"obs": row.obs}
            assert {key: trajectory[f"obs/{key}"][t].tolist() for key in seen} == {
                key: np.asarray(part).tolist() for key, part in seen.items()
            }, start + t
        for name in ("reward", "terminated", "valid"):
            assert trajectory[name].tolist() == [getattr(row, name) for row in own[:-1]], name
        assert trajectory["state"].tolist() == [0 if own[0].first else value]
        for t, row in enumerate(own[:-1]):  # a policy with memory has seen all rows, and forgets at each first
            value = 1 if row.first else value + 1
            assert trajectory["value"][t] == value
        assert (np.diff(trajectory["policy_version"]) >= 0).all()
        start += num_steps


def single(env, actions, mode="single"):
    """mode: how it is reset."""
    obs, first, is_over = env.reset()[0], True, False
    for action in actions:
        if is_over:
            yield Row(obs, first)
            obs, first, is_over = after_the_end(env, action, mode), True, False
            continue
        following, reward, terminated, truncated, _ = env.step(action)
        yield Row(obs, first, reward, terminated, valid=True)
        resets_now = terminated and mode != "ends:NextStep"
        is_over = (terminated or truncated) and not resets_now
        obs, first = env.reset()[0] if resets_now else following, resets_now
    yield Row(obs, first)


def after_the_end(env, action, mode):
    """Where it is reset at once, its first observation is seen by nobody, and its first step is not trained on."""
    obs, _ = env.reset()
    if mode in ("ends:SameStep", "ends:Disabled"):
        obs, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            obs, _ = env.reset()
    return obs


FLAGS = {
    "one of each": {"num_workers": 1, "num_envs_per_worker": 1, "rollout": 1, "batch_size": 3},
    "many": {
        "num_workers": 2,
        "num_envs_per_worker": 6,
        "rollout": 5,
        "batch_size": 20,
        "policy_workers_per_policy": 2,
    },
    "with slots to spare": {
        "num_workers": 1,
        "num_envs_per_worker": 4,
        "rollout": 3,
        "batch_size": 9,
        "extra_slots": 5,
    },
    "in turn": {"num_workers": 2, "num_envs_per_worker": 4, "rollout": 5, "batch_size": 20, "async_rl": False},
}


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        *(("ends:Ends", flags) for flags in ("one of each", "in turn")),
        ("ends:NextStep", "many"),
        ("ends:SameStep", "in turn"),
        ("ends:Disabled", "with slots to spare"),
    ],
)
def test_of_an_environment(env, flags, tmp_path):
    of_actors = trajectories_of(tmp_path, env, **FLAGS[flags])
    assert sorted(of_actors) == list(range(FLAGS[flags]["num_workers"] * FLAGS[flags]["num_envs_per_worker"]))
    assert all(len(actions_of(trajectories)) >= ROWS_OF_EACH for trajectories in of_actors.values())
    for trajectories in of_actors.values():
        assert_same(trajectories, single(ends.Ends(), actions_of(trajectories), env))


@pytest.mark.parametrize(("flags", "num_at_once"), [("many", 1), pytest.param("in turn", 2, marks=pytest.mark.long)])
def test_of_an_environment_while_rollout_workers_are_killed_at_any_line(flags, num_at_once, tmp_path):
    """num_at_once: that are replaced where one dies."""
    deaths = {"bodies": {"rollout": mortal_rollout_worker}, "num_deaths": 2 * NUM_DEATHS // num_at_once}
    of_actors = trajectories_of(tmp_path, "ends:Ends", **deaths, **FLAGS[flags])
    num_lives = []
    for trajectories in of_actors.values():
        begins = [n for n, one in enumerate(trajectories) if one["obs/obs"][0].tolist() == [0, 0, -1]]
        assert begins[0] == 0
        for begin, end in itertools.pairwise([*begins, len(trajectories)]):
            life = trajectories[begin:end]
            assert_same(life, single(ends.Ends(), actions_of(life)))
        num_lives.append(len(begins))
    assert max(num_lives) > 1 or num_at_once == 2  # for then the learner begins anew as well


@pytest.mark.long
def test_of_an_environment_while_policy_workers_are_killed_at_any_line(tmp_path):
    deaths = {"bodies": {"policy": mortal_policy_worker}, "num_deaths": 2 * NUM_DEATHS}
    of_actors = trajectories_of(tmp_path, "ends:Ends", **deaths, **FLAGS["many"])
    for trajectories in of_actors.values():
        assert_same(trajectories, single(ends.Ends(), actions_of(trajectories)))


NUM_AGENTS = 3


def streams_of(of_actors, env_idx):
    """The trajectories of the agents of an environment, as many of each, and their actions."""
    agents = [of_actors[env_idx * NUM_AGENTS + a] for a in range(NUM_AGENTS)]
    num = min(map(len, agents))
    agents = [trajectories[:num] for trajectories in agents]
    return agents, np.transpose([actions_of(trajectories) for trajectories in agents]).tolist()


def match(env, joint_actions):
    """A list of the rows of all agents for each step."""
    agents, nothing = env.possible_agents, np.zeros(5)
    obs, first = env.reset()[0], set(env.agents)
    for actions in joint_actions:
        acted = [*env.agents]
        if not acted:  # the last ones were truncated, and have seen the end
            yield [Row(obs.get(agent, nothing), agent in first) for agent in agents]
            obs, first = env.reset()[0], set(env.agents)
            continue
        chosen = {agent: actions[n] for n, agent in enumerate(agents) if agent in acted}
        following, rewards, terminations, truncations, _ = env.step(chosen)
        yield [
            Row(obs.get(agent, nothing), agent in first, rewards[agent], terminations[agent], valid=True)
            if agent in acted
            else Row(obs.get(agent, nothing), agent in first)
            for agent in agents
        ]
        shown = {*env.agents, *(agent for agent in acted if truncations[agent])}
        obs, first = {agent: following[agent] for agent in shown}, set(env.agents) - set(acted)
        if not shown:
            obs, first = env.reset()[0], set(env.agents)
    yield [Row(obs.get(agent, nothing), agent in first) for agent in agents]


def test_of_the_agents_of_a_match_which_leave_and_come_back(tmp_path):
    sizes = {**FLAGS["many"], "batch_size": 60, "num_envs_per_worker": 2}
    kwargs = f'{{"num_agents": {NUM_AGENTS}, "episodes_per_match": 2}}'
    of_actors = trajectories_of(tmp_path, "toy_match_counting", env_kwargs=kwargs, **sizes)
    assert sorted(of_actors) == list(range(4 * NUM_AGENTS))
    for env_idx in range(4):
        agents, actions = streams_of(of_actors, env_idx)
        env = CountingMatch(NUM_AGENTS, 2, env_idx)
        for trajectories, rows in zip(agents, zip(*match(env, actions), strict=True), strict=True):
            assert_same(trajectories, rows)


def turns(env, joint_actions):
    """As `match`. Who has ended waits for its next turn, in which it leaves; with the last one all leave."""
    agents = env.possible_agents
    nothing = {"observation": np.zeros(4), "action_mask": np.zeros(4)}
    ended = {}  # of those in the match: whether it was terminated, and what it saw then

    def seen(agent, may_act=True):
        mask = np.full(4, may_act and agent == env.agent_selection)
        return {"observation": env.observe(agent), "action_mask": mask.astype(int)}

    def reset():
        env.reset()
        return {agent: seen(agent) for agent in env.agents}, set(env.agents)

    obs, first = reset()
    present = first
    for actions in joint_actions:
        if not present:
            yield [Row(obs.get(agent, nothing), agent in first) for agent in agents]
            obs, first = reset()
            present = first
            continue
        env.step(actions[env.agent_selection])
        acted, rewards = present, dict(env.rewards)
        for agent in acted - ended.keys():
            if env.terminations[agent] or env.truncations[agent]:
                ended[agent] = env.terminations[agent], seen(agent, may_act=False)
        goes_on = acted > ended.keys()
        while goes_on and env.agent_selection in ended:
            env.step(None)
        present = set(env.agents) if goes_on else set()
        left = {agent: ended.pop(agent) for agent in acted - present}
        rows = {
            agent: Row(obs[agent], agent in first, rewards[agent], agent in left and left[agent][0], valid=True)
            for agent in acted
        }
        yield [rows.get(agent, Row(obs.get(agent, nothing), agent in first)) for agent in agents]
        obs, first = {agent: saw for agent, (is_terminated, saw) in left.items() if not is_terminated}, set()
        obs |= {agent: ended[agent][1] if agent in ended else seen(agent) for agent in present}
        if not obs:
            obs, first = reset()
            present = first
    yield [Row(obs.get(agent, nothing), agent in first) for agent in agents]


def test_of_the_agents_of_a_game_by_turns(tmp_path):
    sizes = {**FLAGS["in turn"], "batch_size": 60, "num_envs_per_worker": 2}
    of_actors = trajectories_of(tmp_path, "ends:Turns", **sizes)
    for env_idx in range(4):
        agents, actions = streams_of(of_actors, env_idx)
        for trajectories, rows in zip(agents, zip(*turns(ends.Turns(), actions), strict=True), strict=True):
            assert_same(trajectories, rows)
