"""What a run goes on with, or begins with, means there what it meant where it was trained."""

import dataclasses

import pytest
import torch
from runs import FAST
from untrained import untrained

from sf.config import Config
from sf.run.planning import make_plan
from sf.run.startup.compatibility import require_fits
from sf.run.startup.initial_weights import saved_env_steps
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

LEARNER = {
    "trained_steps": 1234,
    "seconds": 3.0,
    "updater": {"version": 7, "learning_rate": 1e-4, "max_learning_rate": 1e-4, "skipped_updates": 0},
}


def plan_of(env="toy_identity", **flags):
    small = {"encoder_mlp_layers": (16,), "encoder_conv_mlp_layers": (32,), "rnn_size": 16, "device": "cpu"}
    return make_plan(Config().replace(env=env, num_workers=1, **{**small, **flags}))


def fits(plan, env="toy_identity", **flags):
    require_fits(untrained(env, **flags), "FILE", plan, "REMEDY")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {}),
        ({}, {"encoder": "mlp"}),  # which auto is for such observations
        ({}, {"encoder_conv_mlp_layers": (99,), "rnn_size": 99}),  # which this network has not
        ({}, {"initial_stddev": 0.5, "precision": "float32", "gamma": 0.5, "learning_rate": 0.1}),
        ({"core": "gru"}, {"core": "gru"}),
    ],
)
def test_the_same_network_fits_however_it_is_described(before, now):
    fits(plan_of(**now), **before)


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {"nonlinearity": "tanh"}, "nonlinearity"),
        ({}, {"share_critic": False}, "share_critic"),
        ({"core": "gru"}, {"core": "lstm"}, "core"),
        ({}, {"encoder_mlp_layers": (16, 16)}, r"policy_head|trunk"),
    ],
)
def test_another_network_is_named_by_what_differs(before, now, named):
    with pytest.raises(ValueError, match=rf"FILE holds another network .*differ in .*{named}.*: REMEDY"):
        fits(plan_of(**now), **before)


@pytest.mark.parametrize("flags", [{"layer_norm": True}, {"value_scale": "symlog"}])
def test_a_checkpoint_from_before_a_flag_is_of_what_there_was_then(flags):
    saved, (name, *_) = untrained("toy_identity"), flags
    config = {flag: value for flag, value in saved.state["config"].items() if flag != name}
    older = Checkpoint(saved.tensors, {**saved.state, "config": config})
    require_fits(older, "FILE", plan_of(), "REMEDY")
    with pytest.raises(ValueError, match=f"differ in {name}"):
        require_fits(older, "FILE", plan_of(**flags), "REMEDY")


@pytest.mark.parametrize("own", ["mine:Net", "mine"])
def test_an_encoder_of_ones_own_is_the_same_with_the_same_name_and_sizes_alone(own):
    saved, plan = untrained("toy_identity"), plan_of()
    config = {**saved.state["config"], "encoder": own}
    with pytest.raises(ValueError, match="differ in encoder"):
        require_fits(Checkpoint(saved.tensors, {**saved.state, "config": config}), "FILE", plan, "REMEDY")


@pytest.mark.parametrize(
    ("env", "what"), [("toy_bandit", "observations of FILE are obs float "), ("CartPole-v1", "observations|actions")]
)
def test_other_observations_or_actions_are_said(env, what):
    with pytest.raises(ValueError, match=rf"({what}).*those of toy_identity are.*REMEDY"):
        fits(plan_of(), env)


def test_a_network_takes_floats_of_any_size():
    saved = untrained("toy_identity")
    space = {**saved.state["obs_space"], "dtype": "float64"}
    require_fits(Checkpoint(saved.tensors, {**saved.state, "obs_space": space}), "FILE", plan_of(), "REMEDY")


def test_choices_that_only_add_up_to_the_same_are_other_actions():
    saved, plan = untrained("toy_identity"), plan_of()
    num = int(plan.spec.action_space.n)
    one, other = (
        {"type": "MultiDiscrete", "nvec": nvec, "start": [0, 0], "dtype": "int64"}
        for nvec in ([1, num - 1], [num - 1, 1])
    )
    for space in (one, other):
        changed = Checkpoint(saved.tensors, {**saved.state, "action_space": space})
        with pytest.raises(ValueError, match="the actions of FILE are 2 choices"):
            require_fits(changed, "FILE", plan, "REMEDY")


def saved_run(tmp_path, tensors=None, **state):
    """The directory of a run with a checkpoint that lacks the entries that are None."""
    run_dir = RunDir(tmp_path / "run")
    run_dir.prepare(cli.parse(["--env", "toy_identity", *FAST]))
    whole = untrained("toy_identity")
    changed = {name: value for name, value in {**whole.state, **LEARNER, **state}.items() if value is not None}
    tensors = {**whole.tensors, "rng": torch.get_rng_state()} if tensors is None else tensors
    checkpoint.save(run_dir.checkpoints, Checkpoint(tensors, changed), at_env_steps=1234, keep=2)
    return run_dir


def test_a_run_goes_on_with_its_own_network_alone(tmp_path):
    run_dir = saved_run(tmp_path)
    assert saved_env_steps(plan_of(), run_dir) == [1234]
    with pytest.raises(ValueError, match=r"differ in nonlinearity\): .*--restart"):
        saved_env_steps(plan_of(nonlinearity="tanh"), run_dir)


@pytest.mark.parametrize(
    "state",
    [
        {"seconds": None},
        {"seconds": "long"},
        {"updater": None},
        {"updater": {"version": 7}},
        {"config": None},
        {"tensors": untrained("toy_identity").tensors},
        {"tensors": {**untrained("toy_identity").tensors, "rng": torch.zeros(3, dtype=torch.uint8)}},
        {"tensors": {**untrained("toy_identity").tensors, "rng": torch.zeros(5056)}},
    ],
)
def test_a_run_does_not_go_on_with_a_checkpoint_that_lacks_a_part(tmp_path, state):
    with pytest.raises(ValueError, match=r"checkpoint_000001_000000001234\.safetensors (lacks|cannot|does not)"):
        saved_env_steps(plan_of(), saved_run(tmp_path, **state))


def test_a_run_keeps_its_optimiser_which_is_adam_where_none_is_named(tmp_path):
    run_dir, plan = saved_run(tmp_path), plan_of()
    other = dataclasses.replace(plan, config=plan.config.replace(optimizer="muon"))
    with pytest.raises(ValueError, match=r"optimizer is muon, but .* adam"):
        saved_env_steps(other, run_dir)
    config = {name: value for name, value in untrained("toy_identity").state["config"].items() if name != "optimizer"}
    older = saved_run(tmp_path / "older", config=config)  # from before there was another than adam
    assert saved_env_steps(plan, older) == [1234]


def test_an_optimiser_that_this_pytorch_does_not_have_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.delattr(torch.optim, "Muon", raising=False)
    with pytest.raises(ValueError, match=r"optimizer is muon, .* 2\.9"):
        plan_of(optimizer="muon")
