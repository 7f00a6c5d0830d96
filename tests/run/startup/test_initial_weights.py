"""Beginning with the weights of another run: `--init_from`."""

from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
import torch
import yaml
from allocated import allocate, learner_args
from runs import FAST, train_here
from untrained import untrained

from sf.evaluation.play.torch_policy import TorchPolicy
from sf.learner.state import LearnerState
from sf.run.planning import make_plan
from sf.run.startup import compatibility, initial_weights
from sf.run.startup.starting_flags import make_config
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.storage.zoo import places
from sf.tools.commands import cli

COUNT = "model/obs_norm.normalizers.0.moments.count"


def trained(seed, env="toy_identity", env_steps=1234, **flags):
    """A checkpoint of a run, as far as anything but its network matters."""
    saved = untrained(env, seed, env_steps, **flags)
    return Checkpoint({**saved.tensors, COUNT: torch.tensor(100.0 + seed, dtype=torch.float64)}, saved.state)


def source_run(path, *seeds, env="toy_identity", **flags):
    """The directory of a run with a policy for each seed of their networks."""
    run_dir = RunDir(path)
    run_dir.prepare(cli.parse(["--env", env]).replace(num_policies=len(seeds)))
    for policy_id, seed in enumerate(seeds):
        checkpoint.save(run_dir.checkpoints_of(policy_id, len(seeds)), trained(seed, env, **flags), 1234, keep=2)
    return str(path)


def plan_of(*flags, env="toy_identity"):
    return make_plan(cli.parse(["--env", env, *FAST, *flags]))


def begun(*flags, env="toy_identity"):
    """What each policy begins with."""
    plan = plan_of(*flags, env=env)
    return initial_weights.initial_checkpoints(plan, range(plan.num_policies))


def has_weights_of(initial, seed):
    return all(torch.equal(initial.tensors[name], value) for name, value in trained(seed).tensors.items())


def test_a_policy_begins_with_weights_and_normalisers_and_nothing_else(tmp_path, said):
    found = begun("--init_from", source_run(tmp_path / "a", 1), "--learning_rate", "0.5")
    assert has_weights_of(found[0], seed=1)
    assert {name.split("/")[0] for name in found[0].tensors} == {"model", "rng"}  # no moments
    state = found[0].state
    assert [state[name] for name in ("env_steps", "trained_steps", "seconds", "weights_event")] == [0, 0, 0.0, 0]
    assert (state["updater"]["version"], state["updater"]["learning_rate"]) == (1, 0.5)
    assert state["config"]["init_from"] == str(tmp_path / "a")
    assert said == [
        f"policy 0 starts from the weights of {tmp_path}/a/checkpoints/checkpoint_000001_000000001234.safetensors"
    ]


def test_the_random_numbers_are_those_of_the_seed_and_nobody_elses_change(tmp_path):
    source = source_run(tmp_path / "a", 1)
    before = torch.get_rng_state()
    rng = {seed: begun("--init_from", source, "--seed", seed)[0].tensors["rng"] for seed in ("3", "4")}
    again = begun("--init_from", source, "--seed", "3")[0].tensors["rng"]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(rng["3"], again)
    assert not torch.equal(rng["3"], rng["4"])


@pytest.mark.parametrize(
    ("sources", "begun_with"),
    [((7, 8), [7, 8, 7]), ((5, 6, 7, 8), [5, 6, 7])],
)
def test_policies_begin_with_those_of_their_numbers(tmp_path, sources, begun_with):
    found = begun("--init_from", source_run(tmp_path / "a", *sources), "--num_policies", "3")
    assert [has_weights_of(found[policy_id], seed) for policy_id, seed in enumerate(begun_with)] == [True] * 3


def test_all_policies_begin_with_a_checkpoint_that_is_named_itself(tmp_path):
    source_run(tmp_path / "a", 7, 8)
    (file,) = (tmp_path / "a" / "checkpoints" / "policy_01").iterdir()
    found = begun("--init_from", str(file), "--num_policies", "2")
    assert has_weights_of(found[0], seed=8)
    assert has_weights_of(found[1], seed=8)


@pytest.mark.parametrize(
    ("source", "flags", "sentence"),
    [
        ({}, ["--nonlinearity", "tanh"], "another network than the flags describe (they differ in nonlinearity)"),
        ({"env": "toy_bandit"}, [], "obs float (1,), and those of toy_identity are obs float (4,)"),
        ({"env": "CartPole-v1"}, [], "1 choices among (2,) and 0 real numbers, and those of toy_identity are"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, source, flags, sentence):
    with pytest.raises(ValueError) as refusal:
        begun("--init_from", source_run(tmp_path / "a", 1, **source), *flags)
    assert sentence in str(refusal.value)
    assert str(refusal.value).startswith("init_from: ")
    assert "\n" not in str(refusal.value)


def test_what_is_no_checkpoint_is_refused_before_anything_is_touched(tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"nothing")
    for path, sentence in (
        (broken, "checksum"),
        (tmp_path / "none", "neither a checkpoint nor the directory of a run"),
    ):
        with pytest.raises(ValueError, match=f"init_from: .*{sentence}"):
            train_here(tmp_path / "runs", "--init_from", str(path))
    assert list((tmp_path / "runs").glob("[!.]*")) == []


def test_a_learner_that_is_replaced_before_it_has_trained_begins_with_them_again(tmp_path):
    plan = plan_of("--init_from", source_run(tmp_path / "a", 1))
    run_dir = RunDir(tmp_path / "b")
    initial_weights.write(plan, run_dir, initial_weights.initial_checkpoints(plan, [0]))
    memory = allocate(plan.config, run_dir.path)
    versions = []
    for env_steps in (None, 0):
        args = learner_args(memory, predecessor_env_steps=env_steps)
        state = LearnerState(args, published_version=max(versions, default=0))
        assert has_weights_of(Checkpoint(state.updater.tensors(), {}), seed=1)
        assert (state.env_steps, state.lost_steps, state.seconds_before) == (0, 0, 0.0)
        versions.append(state.updater.version)
    assert versions == [1, 1]  # the same weights: it need not be another one


class Begun:
    """A run that begins with another, and goes on though the flags name a third."""

    def __init__(self, path):
        a, b = source_run(path / "a", 1), source_run(path / "b", 2)
        run = path / "runs" / "toy_identity"
        small_steps = ["--learning_rate", "1e-12", "--keep_checkpoints", "9"]
        with redirect_stdout(StringIO()) as first:
            self.summary = train_here(path / "runs", "--init_from", a, *small_steps, "--train_for_env_steps", "128")
        with redirect_stdout(StringIO()) as second:
            self.resumed = train_here(path / "runs", "--init_from", b, "--train_for_env_steps", "256")
        self.said = (first.getvalue(), second.getvalue())
        self.config = yaml.safe_load((run / "config.yaml").read_text())
        self.checkpoints = [checkpoint.load(file) for file in sorted((run / "checkpoints").glob("checkpoint_*"))]
        self.a = a


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Begun(tmp_path_factory.mktemp("warm"))


def test_a_run_trains_on_from_the_weights_with_counters_and_optimiser_of_its_own(run):
    first, after, *_ = run.checkpoints
    assert has_weights_of(first, seed=1)
    assert [saved.state["env_steps"] for saved in run.checkpoints] == [0, 128, 256]
    head = "model/policy_head.weight"
    assert torch.allclose(after.tensors[head], first.tensors[head], atol=1e-9)  # the learning rate is next to nothing
    assert after.tensors["optimizer/policy_head.weight/step"] == run.summary["train/policy_version"] - 1 == 2
    assert after.tensors[COUNT] == 101.0 + 128  # the normaliser goes on
    assert run.summary["env_steps"] == 128


def test_a_run_that_is_resumed_goes_on_from_its_own_and_says_so_once(run):
    first, second = run.said
    assert "policy 0 starts from the weights of" in first
    assert "toy_identity at 128 env steps (--restart_behavior restart starts over" in second
    assert second.count("init_from") == 1
    assert "init_from is ignored: " in second
    assert "starts from the weights" not in second
    assert run.resumed["env_steps"] == 256
    assert run.config["init_from"] == run.a


@pytest.mark.parametrize("has_clock", [True, False])
def test_the_critic_has_a_clock_if_that_of_the_policy_has_that_a_run_begins_from(has_clock, tmp_path):
    pytest.importorskip("pettingzoo")
    env = "pettingzoo:classic/rps_v2"  # truncates its episodes itself
    source = untrained(env, 0, critic_clock=has_clock)
    checkpoint.save(tmp_path, source, 1234, keep=2)
    (file,) = tmp_path.glob("*.safetensors")
    plan = make_plan(make_config(env=env, init_from=str(file), num_workers=1, device="cpu"))
    assert plan.config.model.critic_clock is has_clock
    assert cli.parse(["--env", env, "--init_from", str(file)]).model.critic_clock is has_clock
    assert make_plan(make_config(env=env, num_workers=1, device="cpu")).config.model.critic_clock


@pytest.mark.parametrize("pads", [True, False, None])
def test_images_are_padded_as_for_the_policy_that_a_run_begins_from(pads, tmp_path):
    env = "camera_env:Camera"
    source = untrained(env, 0, pad_images=bool(pads))
    if pads is None:  # it is older than the flag
        del source.state["config"]["pad_images"]
    checkpoint.save(tmp_path, source, 1234, keep=2)
    (file,) = tmp_path.glob("*.safetensors")
    alike = {"encoder_conv_mlp_layers": (32,), "normalize_returns": False}
    flags = {"env": env, "num_workers": 1, "device": "cpu", **alike}
    plan = make_plan(make_config(init_from=str(file), **flags))
    assert plan.config.model.pad_images is bool(pads)
    assert cli.parse(["--env", env, "--init-from", str(file)]).model.pad_images is bool(pads)
    compatibility.require_fits(checkpoint.load(file), file, plan, "")
    assert TorchPolicy(checkpoint.load(file), "policy").act(np.zeros((64, 64, 3), np.uint8)) in (0, 1)
    assert make_plan(make_config(**flags)).config.model.pad_images


def test_the_network_is_that_of_the_policy_that_a_run_begins_from(tmp_path):
    source = untrained("CartPole-v1", 0, encoder_mlp_layers=(48, 32), nonlinearity="relu", core="lstm", rnn_size=24)
    checkpoint.save(tmp_path, source, 1234, keep=2)
    (file,) = tmp_path.glob("*.safetensors")
    flags = {"env": "CartPole-v1", "num_workers": 1, "device": "cpu", "init_from": str(file)}
    plan = make_plan(make_config(**flags))
    model = plan.config.model
    assert (model.encoder_mlp_layers, model.nonlinearity, model.core, model.rnn_size) == ((48, 32), "relu", "lstm", 24)
    assert model.share_critic
    assert not make_config(env="CartPole-v1").model.share_critic  # the preset's
    compatibility.require_fits(checkpoint.load(file), file, plan, "")
    assert make_config(**flags, nonlinearity="elu").model.nonlinearity == "elu"  # what is named, is for the check


def test_the_network_is_that_of_the_policy_that_a_file_of_flags_names(tmp_path):
    checkpoint.save(tmp_path, untrained("CartPole-v1", 0, encoder_mlp_layers=(48, 32)), 1234, keep=2)
    (file,) = tmp_path.glob("*.safetensors")
    flags = tmp_path / "flags.yaml"
    flags.write_text(yaml.safe_dump({"env": "CartPole-v1", "init_from": str(file), "encoder_mlp_layers": [64, 64]}))
    assert make_config(config=str(flags)).model.encoder_mlp_layers == (48, 32)


def test_code_that_a_policy_names_is_not_taken_over(tmp_path):
    source = untrained("CartPole-v1", 0)
    source.state["config"] |= {"encoder": "theirs:Encoder", "model": "theirs:Model"}
    checkpoint.save(tmp_path, source, 1234, keep=2)
    (file,) = tmp_path.glob("*.safetensors")
    model = make_config(env="CartPole-v1", init_from=str(file)).model
    assert (model.encoder, model.model) == ("auto", "actor_critic")


def test_a_run_can_begin_with_a_policy_of_the_zoo():
    flags = ("--init_from", "zoo/CartPole-v1", "--config", "fast", "--encoder_mlp_layers", "64", "64")
    found = begun(*flags, env="CartPole-v1")
    weights = checkpoint.load(places.located("zoo/CartPole-v1")).tensors
    assert all(torch.equal(found[0].tensors[name], value) for name, value in weights.items())
