"""A critic that sees other agents, the state of the environment, or keys of the observation, and an actor that does
not; and mixers of values."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import Config
from sf.config.flags.model import ModelConfig
from sf.envs import ActionSpec
from sf.envs.added.central_state import StateShare
from sf.envs.added.clock import CENTRAL_STATE
from sf.model.building import build_model
from sf.model.mixers import MonotonicMixer, SumMixer
from sf.run.planning import make_plan

VECTOR, PRIVATE = gym.spaces.Box(-1, 1, (4,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)
STATE = gym.spaces.Box(-9, 9, (7,), np.float32)
ACTIONS = ActionSpec.of(gym.spaces.Discrete(3))
TEAMS = (0, 1, 0, 1, 0)
A, T, E = len(TEAMS), 4, 3
CRITICS = [
    {"critic": "team"},
    {"critic": "all"},
    {"critic": "all", "share_critic": False},
    {"critic": "all", "core": "gru", "share_critic": False},
    {"critic": "state"},
    {"critic": "state", "mixer": "monotonic"},
    {"mixer": "sum"},
]


def network(teams=TEAMS, seed=0, **flags):
    torch.manual_seed(seed)
    spaces = {"obs": VECTOR}
    if flags.get("critic") == "state":
        spaces[CENTRAL_STATE] = StateShare(STATE, len(teams))
    if flags.get("critic_obs"):
        spaces |= {"privileged": PRIVATE}
    config = dataclasses.replace(ModelConfig(encoder_mlp_layers=(8,), rnn_size=8), **flags)
    model = build_model(config, gym.spaces.Dict(spaces), ACTIONS, teams)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


def unroll(model, obs, state=None):
    """obs: [T+1, E, A, K]. Returns params [T, E, A, P] and values [T+1, E, A]."""
    rows = {"obs": obs.flatten(1, 2)}
    if state is not None:
        cut = StateShare(STATE, obs.shape[2]).cut
        shares = np.stack([[cut(each) for each in of_step] for of_step in state.numpy()])  # [T+1, E, A, share]
        rows[CENTRAL_STATE] = torch.from_numpy(shares).flatten(1, 2)
    first = torch.zeros(rows["obs"].shape[:2], dtype=torch.bool)
    out = model.unroll(rows, torch.zeros(first.shape[1], model.state_size), first)
    return out.params.unflatten(1, obs.shape[1:3]), out.value.unflatten(1, obs.shape[1:3])


def inputs(seed=1):
    torch.manual_seed(seed)
    return torch.randn(T + 1, E, A, 4), torch.randn(T + 1, E, 7)


def call(model, obs, state):
    return unroll(model, obs, state if model.central_critic is not None and model.central_critic.private else None)


@pytest.mark.parametrize("flags", CRITICS, ids=str)
def test_the_order_of_the_agents_of_a_team_permutes_the_values(flags):
    model = network(**flags)
    obs, state = inputs()
    params, value = call(model, obs, state)
    order = [4, 3, 0, 1, 2]  # within teams
    params_then, value_then = call(model, obs[:, :, order], state)
    torch.testing.assert_close(params_then, params[:, :, order])
    torch.testing.assert_close(value_then, value[:, :, order])


@pytest.mark.parametrize("flags", CRITICS, ids=str)
def test_the_policy_depends_on_its_own_observation_alone_and_the_value_on_what_the_flag_says(flags):
    model = network(**flags)
    obs, state = inputs()
    params, value = call(model, obs, state)
    sees = {"team": [0, 2, 4], "all": range(A), "own": [0], "state": [0]}[flags.get("critic", "own")]
    if "mixer" in flags:
        sees = [0, 2, 4]
    for agent in range(A):
        other = obs.clone()
        other[:, 0, agent] += 1.0
        params_then, value_then = call(model, other, state)
        assert torch.equal(
            params_then[:, :, [n for n in range(A) if n != agent]], params[:, :, [n for n in range(A) if n != agent]]
        )
        assert torch.equal(value_then[:, 1:], value[:, 1:])  # of other environments
        assert torch.equal(value_then[:, 0, 0], value[:, 0, 0]) == (agent not in sees)
    params_then, value_then = call(model, obs, state + 1.0)
    assert torch.equal(params_then, params)
    assert torch.equal(value_then, value) == (flags.get("critic") != "state")


@pytest.mark.parametrize(
    "flags", [{"critic": "team"}, {"critic": "all"}, {"mixer": "sum"}, {"mixer": "monotonic"}], ids=str
)
def test_an_agent_that_is_absent_counts_for_nothing(flags):
    many, few = network(teams=(0, 0, 1, 1, 1), **flags), network(teams=(0, 0, 1), **flags)
    obs, state = inputs()
    obs[:, :, 3:] = 0.0
    few.load_state_dict(many.state_dict())
    torch.testing.assert_close(call(many, obs, state)[1][:, :, :3], call(few, obs[:, :, :3], state)[1])


def test_a_step_computes_no_value_and_the_same_policy():
    model = network(critic="all")
    obs, _ = inputs()
    out = model.step({"obs": obs[0, 0]}, torch.zeros(A, 0), torch.zeros(A, dtype=torch.bool))
    torch.testing.assert_close(out.params, unroll(model, obs)[0][0, 0])
    assert not out.value.any()


def test_keys_for_the_critic_alone_change_the_value_and_not_the_policy():
    model = network(teams=(), critic_obs=("privi*",))
    obs = {"obs": torch.randn(T + 1, E, 4), "privileged": torch.randn(T + 1, E, 2)}
    first = torch.zeros(T + 1, E, dtype=torch.bool)
    before = model.unroll(obs, torch.zeros(E, 0), first)
    after = model.unroll({**obs, "privileged": obs["privileged"] + 1}, torch.zeros(E, 0), first)
    assert torch.equal(before.params, after.params)
    assert (before.value != after.value).all()
    acting = model.step({"obs": obs["obs"][0]}, torch.zeros(E, 0), first[0])
    torch.testing.assert_close(acting.params, before.params[0])


def test_the_state_is_normalised_once_for_each_step_of_an_environment():
    model = network(critic="state")
    _, state = inputs()
    share = StateShare(STATE, A)
    rows = torch.from_numpy(np.stack([[share.cut(each) for each in row] for row in state.numpy()])).flatten(1, 2)
    mask = torch.ones(T + 1, E * A, dtype=torch.bool)
    model.update_normalizers({"obs": torch.randn(T + 1, E * A, 4), CENTRAL_STATE: rows}, mask)
    moments = model.central_critic.norm.normalizers[0].moments
    torch.testing.assert_close(moments.mean.float(), state.flatten(0, 1).mean(0))
    torch.testing.assert_close(moments.var.float(), state.flatten(0, 1).var(0, correction=0))


@pytest.mark.parametrize("kind", [SumMixer, MonotonicMixer])
def test_no_agent_that_is_worth_more_makes_its_team_worth_less(kind):
    torch.manual_seed(0)
    mixer = SumMixer(TEAMS) if kind is SumMixer else MonotonicMixer(TEAMS, 6)
    for _ in range(20):
        value = (3 * torch.randn(E * A)).requires_grad_()
        features, is_present = torch.randn(E * A, 6), torch.rand(E * A) < 0.7
        team_value = mixer(value, features, is_present).unflatten(0, (E, A))
        for agent in range(A):
            (slope,) = torch.autograd.grad(team_value[:, agent].sum(), value, retain_graph=True)
            slope = slope.unflatten(0, (E, A))
            mates = torch.tensor([team == TEAMS[agent] for team in TEAMS])
            counts = is_present.unflatten(0, (E, A)) & mates
            assert (slope[counts] > 0).all()
            assert not slope[~counts].any()


def test_the_sum_is_the_sum():
    mixer = SumMixer((0, 0, 1))
    value = torch.tensor([1.0, 2.0, 5.0])
    team_value = mixer(value, torch.zeros(3, 1), torch.ones(3, dtype=torch.bool))
    assert team_value.tolist() == [3.0, 3.0, 5.0]


def test_statistics_of_returns_leave_the_values_of_teams_as_they_were():
    model = network(mixer="monotonic", normalize_returns=True)
    obs, _ = inputs()
    everywhere = torch.ones(T, E * A, dtype=torch.bool)
    model.update_value_norm(torch.randn(T, E * A) * 5 + 100, everywhere)
    before = model.value_norm.denormalize(unroll(model, obs)[1])
    model.update_value_norm(torch.randn(T, E * A) * 50 - 30, everywhere)
    torch.testing.assert_close(model.value_norm.denormalize(unroll(model, obs)[1]), before, rtol=1e-3, atol=1e-2)


def test_it_is_refused_where_there_is_nothing_to_see():

    for env, flags in (
        ("toy_bandit", {"critic": "all"}),
        ("toy_bandit", {"critic": "state"}),
        ("toy_bandit", {"critic_obs": ("privileged",)}),
        ("toy_match_rps", {"critic": "state"}),
        ("toy_match_rps", {"critic": "all", "batch_size": 96}),
    ):
        with pytest.raises(ValueError, match=next(iter(flags))):
            make_plan(Config().replace(env=env, **flags))
