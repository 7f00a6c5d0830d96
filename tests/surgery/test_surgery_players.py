"""Players that do not learn come along: they play as they did where they can, in the spaces of the new run."""

import gymnasium as gym
import numpy as np
import pytest
from patients import box, operate, patient, spec_of

from sf.config import Config
from sf.envs import EnvOptions, EnvSpec
from sf.envs.errors import UsageError
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.league.players.entrants import find_entrants
from sf.league.players.snapshots import kept_at
from sf.storage import checkpoint
from sf.surgery.operated import Request
from sf.surgery.players import operated_player
from sf.surgery.subject import Subject

OLD, NEW = ({"obs": box(5)}, gym.spaces.Discrete(3)), ({"obs": box(7)}, gym.spaces.Discrete(4))
SPEC = EnvSpec(gym.spaces.Dict(NEW[0]), NEW[1], num_agents=2)


@pytest.fixture(scope="module")
def policy():
    return patient(*OLD)


def request_of(policy, **flags):
    config = Config().replace(**{**policy.state["config"], **flags})
    return Request(Subject.of_spec(config.model, spec_of(*NEW, config), ()), config)


def operate_on(saved, policy, **flags):
    return operated_player(saved, "a player", [policy], [request_of(policy, **flags)])


@pytest.mark.parametrize(
    ("own", "changed"),
    [({}, {}), ({"encoder_mlp_layers": (12,), "core": "lstm"}, {"encoder_mlp_layers": (10,)})],
    ids=["a snapshot", "a network of its own"],
)
def test_a_player_plays_as_before_and_never_takes_a_new_choice(policy, own, changed):
    player = checkpoint.without_optimizer(patient(*OLD, seed=3, **own))
    made = operate_on(player, policy, **changed).checkpoint()
    before, after = (TorchPolicy(saved, "a player") for saved in (player, made))
    assert after.flat_obs_space["obs"].shape == (7,)
    assert after.config.model.core == own.get("core", "none")
    if not own:
        seen = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
        expected = before.probabilities({"obs": seen[:, :5]})
        np.testing.assert_allclose(after.probabilities({"obs": seen})[:, :3], expected, atol=1e-5)
        assert not after.probabilities({"obs": seen})[:, 3].any()


def test_a_snapshot_gets_the_network_of_its_policy(policy):
    player = checkpoint.without_optimizer(patient(*OLD, seed=3))
    made = operate_on(player, policy, encoder_mlp_layers=(10,)).checkpoint()
    assert made.tensors["model/trunk.actor.encoders.0.linear.0.weight"].shape == (10, 7)


def test_a_player_of_other_spaces_stays_as_it_is(policy):
    assert operate_on(patient({"obs": box(6)}, OLD[1]), policy) is None


def test_players_that_a_run_names_are_operated_on_once(policy, tmp_path):
    named = tmp_path / "elsewhere" / "rival.safetensors"
    checkpoint.write(named, patient(*OLD, seed=3))

    def find(operate=None):
        return find_entrants([str(named)], "an env", EnvOptions(), SPEC, tmp_path / "run", operate=operate)

    with pytest.raises(UsageError, match="name a player of the same environment"):
        find()
    ((name, found),) = find(lambda saved, file: operate_on(saved, policy).checkpoint()).items()
    assert TorchPolicy(found, name).action_space == NEW[1]
    checkpoint.write(kept_at(tmp_path / "run", name), checkpoint.without_optimizer(found))
    ((_, again),) = find().items()  # a resumed run has its copy
    assert checkpoint.weights_of(again) == checkpoint.weights_of(found)


def test_the_probability_of_a_new_choice_needs_an_environment_that_shows_what_the_policy_sees(policy):
    with pytest.raises(UsageError, match="how probable new choices are"):
        operate(policy, {"obs": box(4)}, NEW[1], request={"is_inexact": True})
