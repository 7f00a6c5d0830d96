"""A policy of some kinds of agents has their spaces, and what it reads of the rows of all kinds is what they see."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from kinds_env import box

from sf.config import ModelConfig
from sf.envs import ActionSpec, EnvOptions
from sf.envs.groups.kinds import AGENT_KIND
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.policy_spec import spec_of_kinds
from sf.envs.spaces.observations import ObsWriter, obs_arrays
from sf.learner.batches.batch import Batch
from sf.learner.batches.loaders import SlotCopier
from sf.model.building import build_model
from sf.model.distributions import ActionDistribution
from sf.policy.transfers import ObsGather
from sf.shared.policy_view import PolicyView, widened
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.rows import OBS, slot_fields
from sf.system.arrays import SharedArrays

NUM_KINDS, NUM_SLOTS, T = 3, 4, 3
ALL_SLOTS = [*range(NUM_SLOTS)]


class Kinds:
    """Each agent is a kind of its own."""

    def __init__(self, spaces):
        self.possible_agents = self.agents = [f"agent_{number}" for number in range(len(spaces))]
        self.spaces = dict(zip(self.agents, spaces, strict=True))
        self.obs = {agent: obs_space.sample() for agent, (obs_space, _) in self.spaces.items()}

    def observation_space(self, agent):
        return self.spaces[agent][0]

    def action_space(self, agent):
        return self.spaces[agent][1]

    def reset(self, seed=None):
        return self.obs, {}

    def close(self):
        pass


def random_kinds(rng):
    """Returns the spaces of each kind."""
    kinds = []
    for number in range(NUM_KINDS):
        heads = rng.integers(2, 6, rng.integers(1, 4))
        numbers = [box(int(rng.integers(1, 4)), low=-1, high=1)] if rng.random() < 0.5 else []
        dtype = [np.float32, np.float64, np.uint8][rng.integers(3)]
        obs = {"x": gym.spaces.Box(0, 9, (int(rng.integers(1, 6)),), dtype), f"of_{number}": box(2, low=0, high=1)}
        if rng.random() < 0.5:
            obs["picture"] = gym.spaces.Box(0, 255, (8, 8, 1), np.uint8)
        if rng.random() < 0.5:
            obs["action_mask"] = gym.spaces.Box(0, 1, (1, int(heads.sum())), np.int8)
        kinds.append((gym.spaces.Dict(obs), gym.spaces.Tuple([gym.spaces.MultiDiscrete(heads), *numbers])))
    for (obs, _), seed in zip(kinds, rng.integers(1 << 30, size=NUM_KINDS).tolist(), strict=True):
        obs.seed(seed)
    return kinds


@pytest.fixture(params=range(8))
def group(request):
    return ParallelGroup("kinds", [Kinds(random_kinds(np.random.default_rng(request.param)))], 0, 0)


@pytest.mark.parametrize("kind", range(NUM_KINDS))
def test_a_policy_of_one_kind_has_its_spaces_and_reads_nothing_else(group, kind):
    env, spec = group._envs[0], group.spec
    obs_space, action_space = env.spaces[f"agent_{kind}"]
    own = spec_of_kinds("kinds", spec, (kind,), EnvOptions())
    assert (own.native_obs_space, own.action_space) == (obs_space, action_space)
    writer = ObsWriter("kinds", obs_space)
    assert own.obs_space == writer.space
    shown = spec_of_kinds("kinds", spec, (kind,), EnvOptions(show_agent=True))
    assert shown.obs_space.spaces.keys() == {*writer.space.spaces, "agent_index"}

    expected, rows = obs_arrays(own.obs_space, 1), obs_arrays(spec.obs_space, NUM_KINDS)
    writer.write(env.obs[f"agent_{kind}"], {key: list(array) for key, array in expected.items()}, 0)
    group.reset({key: list(array) for key, array in rows.items()})
    view = PolicyView(own)
    found = view.observations({key: array[[kind]] for key, array in rows.items()})
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert (found[key].dtype, found[key].tolist()) == (array.dtype, array.tolist()), key

    outcomes = [through_slots(own, spec, rows, kind, seed) for seed in range(2)]
    for key, array in expected.items():
        assert (outcomes[0]["batch"].obs[key].numpy() == array).all()
        assert (outcomes[0]["gathered"][key].numpy() == array).all()
    first, second = (each["batch"].named() for each in outcomes)
    action = ActionSpec.of(action_space)
    assert first["discrete"].shape == (T, NUM_SLOTS, len(action.discrete_sizes))
    assert first["continuous"].shape == (T, NUM_SLOTS, action.num_continuous)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    for one, other in zip(*(each["gradients"] for each in outcomes), strict=True):
        assert one.isfinite().all()
        assert torch.equal(one, other)


def through_slots(own, spec, rows, kind, seed):
    """Returns what a policy worker and a learner make of slots of one kind. seed: of all numbers of other kinds."""
    rng, action = np.random.default_rng(seed), ActionSpec.of(own.action_space)
    slots = SharedArrays(slot_fields(spec, NUM_SLOTS, T))
    of_actions = np.random.default_rng(7)
    own_discrete = of_actions.integers(0, 2, (NUM_SLOTS * T, len(action.discrete_sizes)), np.int32)
    own_continuous = of_actions.standard_normal((NUM_SLOTS * T, action.num_continuous)).astype(np.float32)
    for name, answer in (("discrete", own_discrete), ("continuous", own_continuous)):
        assert not widened(answer, slots[name].shape[2:])[:, answer.shape[1] :].any()
        slots[name][:] = rng.integers(100, 200, slots[name].shape)
        slots[name][..., : answer.shape[1]] = answer.reshape(NUM_SLOTS, T, -1)
    for key, array in slots.named(OBS).items():
        array[:] = rng.integers(1, 100, array.shape)
        if key in own.obs_space.spaces:
            part = (...,) if key == "action_mask" else tuple(map(slice, own.obs_space[key].shape))
            array[(slice(None), slice(None), *part)] = rows[key][kind][part]
    view = PolicyView(own)
    batch = Batch.empty(view.layout(slots), NUM_SLOTS, 0, "cpu")
    for_learner = type("Slots", (), {"arrays": slots, "is_own": lambda self, slots: np.ones(len(slots), bool)})()
    SlotCopier(for_learner, RecurrentStates(0, NUM_SLOTS, NUM_SLOTS), own).copy(ALL_SLOTS, batch, 0)
    gather = ObsGather(slots, own, NUM_SLOTS, "cpu")
    gather.stage(np.arange(NUM_SLOTS) * (T + 1) + 1)

    torch.manual_seed(0)
    model = build_model(ModelConfig(encoder_mlp_layers=(8,), encoder_conv_mlp_layers=(8,)), own.obs_space, action)
    out = model.unroll(batch.obs, batch.state, torch.ones(T + 1, NUM_SLOTS, dtype=torch.bool))
    policy = ActionDistribution(action, out.params)
    (policy.log_prob(batch.discrete, batch.continuous).sum() + policy.entropy().sum() + out.value.sum()).backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return {"batch": batch, "gathered": gather.there(NUM_SLOTS), "gradients": gradients}


def test_a_policy_of_some_kinds_has_their_union(group):
    spaces = [*group._envs[0].spaces.values()]
    alone = ParallelGroup("kinds", [Kinds([spaces[0], spaces[2]])], 0, 0).spec
    own = spec_of_kinds("kinds", group.spec, (0, 2), EnvOptions(show_agent=False))
    assert own.action_space == alone.action_space
    assert own.obs_space[AGENT_KIND] == group.spec.obs_space[AGENT_KIND]
    assert {**own.obs_space.spaces, AGENT_KIND: None} == {**alone.obs_space.spaces, AGENT_KIND: None}
    assert spec_of_kinds("kinds", group.spec, (0, 1, 2), EnvOptions()) is group.spec
