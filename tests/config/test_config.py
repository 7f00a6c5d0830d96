"""Wrong settings are found before anything starts, and said in one sentence."""

import dataclasses
import json
import os
import re
import resource
import sys

import gymnasium as gym
import numpy as np
import pytest
import yaml
from allocated import allocate

from sf.config import Config, presets
from sf.config.older import BEFORE_THE_FLAG
from sf.envs import EnvSpec, Planes
from sf.run.planning import make_plan
from sf.storage.run_dir import RunDir
from sf.tools.commands import entry_points
from sf.tools.commands.cli import parse


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"batch_size": 1000}, "batch_size is 1000: it must be a multiple of rollout"),
        ({"num_envs_per_worker": 5, "worker_num_splits": 2}, "it must be a multiple of worker_num_splits"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: above 0"),
        ({"lr_schedule": "linear"}, "it needs train_for_env_steps, train_for_env_frames or train_for_seconds"),
        ({"lr_adaptive_max_hold": 1.0}, "lr_adaptive_max_hold is 1.0: at least 0 and below 1"),
        ({"lr_schedule": "kl_adaptive", "async_rl": False}, "sees no KL divergence"),
        ({"value_scale": "symlog", "normalize_returns": True}, "set normalize_returns to false"),
        ({"trajectory_priority": 0.5, "shuffle_steps": True}, "set shuffle_steps to false, or traj"),
        ({"layer_norm": True, "encoder_mlp_layers": (8, 1)}, "every width must be at least 2"),
        ({"encoder_mlp_residual": 1, "encoder_mlp_layers": (8, 6)}, "the width of the layer before it"),
        ({"encoder_conv_mlp_residual": 1, "encoder_conv_mlp_layers": (8,)}, "below the number of layers"),
        ({"core_skip": True}, "core is none"),
        ({"surgery": True}, "init_from names nothing"),
        ({"vtrace_c": 2.0}, "V-trace needs rho >= c"),
        ({"env_kwargs": "[1]"}, "it must be a JSON object"),
        ({"experiment": "a/b"}, "without '/'"),
        ({"train_dir": ""}, "train_dir is empty: name a folder"),
        ({"async_rl": False, "policy_workers_per_policy": 2}, "synchronous training uses 1"),
        ({"bacth_size": 32}, "unknown setting bacth_size"),
    ],
)
def test_a_broken_rule_names_the_flag_and_what_to_change(flags, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        Config().replace(**flags)


def test_no_flag_name_belongs_to_two_components():
    components = [getattr(Config(), field.name) for field in dataclasses.fields(Config)]
    assert len(Config().flat()) == sum(len(dataclasses.fields(component)) for component in components)


def test_flags_win_over_the_preset_of_the_environment():
    config = parse(["--env", "doom_basic", "--learning_rate", "0.5"])
    assert config.model.core == "gru"
    assert config.learner.learning_rate == 0.5
    config = parse(["--env", "CartPole-v1", "--config", "doom_battle"])
    assert (config.run.env, config.model.core) == ("CartPole-v1", "gru")


def test_a_family_has_a_preset_for_every_member():
    assert presets.name_for_env("atari_pong") == "atari"
    assert presets.name_for_env("PongNoFrameskip-v4") == "atari"
    of_machado = presets.load(presets.name_for_env("ALE/Pong-v5"))
    assert of_machado == {**presets.load("atari"), "atari_episodic_life": False}
    assert presets.name_for_env("unheard_of") is None
    assert presets.name_for_env("fast_food") is presets.name_for_env("fast:MyEnv") is None
    assert presets.name_for_env("vector_of_choices") is None  # its actions say its kind, not its name


VECTOR, IMAGE = gym.spaces.Box(-1.0, 1.0, (3,), np.float32), gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)
SMALL_IMAGE = gym.spaces.Box(0, 255, (32, 32, 3), np.uint8)
MASK = gym.spaces.Box(0, 1, (3,), np.int8)
SYMBOLS = gym.spaces.Box(0, 255, (7, 7, 3), np.uint8)
CHOICE = gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("obs", "action_space", "num_agents", "preset"),
    [
        ({"obs": VECTOR}, CHOICE, 1, "vector"),
        ({"obs": VECTOR}, VECTOR, 1, "continuous"),
        ({"place": VECTOR, "camera": IMAGE}, VECTOR, 1, "image_continuous"),
        ({"place": VECTOR, "camera": IMAGE}, CHOICE, 1, "image"),
        ({"place": VECTOR, "camera": SMALL_IMAGE}, CHOICE, 1, "small_image"),
        ({"map": SMALL_IMAGE, "camera": IMAGE}, CHOICE, 1, "image"),
        ({"map": SMALL_IMAGE}, VECTOR, 1, "small_image_continuous"),
        ({"grid": SYMBOLS, "place": VECTOR}, CHOICE, 1, "symbols"),
        ({"board": Planes(3, 6, 7)}, CHOICE, 1, "symbols"),
        ({"obs": VECTOR, "action_mask": IMAGE}, CHOICE, 1, "vector"),  # of a board, with a plane for each kind of move
        ({"board": Planes(3, 6, 7), "action_mask": MASK}, CHOICE, 2, "board"),  # agents with legal moves
        ({"board": Planes(3, 6, 7), "action_mask": MASK}, CHOICE, 1, "symbols"),
        ({"board": Planes(3, 6, 7)}, CHOICE, 2, "symbols"),
    ],
)
def test_the_spaces_say_which_kind_an_environment_is_of(obs, action_space, num_agents, preset):
    assert presets.name_for_spec(EnvSpec(gym.spaces.Dict(obs), action_space, num_agents=num_agents)) == preset


class OfSomeKind(gym.Env):
    """Its arguments say which; its name is known to no preset."""

    def __init__(self, is_continuous=False, num_pixels=0):
        self.observation_space = gym.spaces.Box(0, 255, (num_pixels, num_pixels, 3), np.uint8) if num_pixels else VECTOR
        self.action_space = VECTOR if is_continuous else CHOICE


class Blank(gym.ObservationWrapper):
    """Shows an image in the place of everything."""

    def __init__(self, env, num_pixels=48):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (num_pixels, num_pixels, 3), np.uint8)


@pytest.mark.parametrize(
    ("args", "preset"),
    [
        ([], "vector"),
        (["--env_kwargs", '{"is_continuous": true}'], "continuous"),
        (["--env_kwargs", '{"is_continuous": true}', "--config", "fast"], "fast"),
        (["--env_wrappers", f"{__name__}:Blank"], "image"),
        (["--env_wrappers", json.dumps({f"{__name__}:Blank": {"num_pixels": 36}})], "image"),
    ],
)
def test_an_environment_without_a_preset_of_its_name_starts_from_that_of_its_kind(args, preset, tmp_path):
    args = ["--env", f"{__name__}:OfSomeKind", *args, "--train_dir", str(tmp_path), "--experiment", "x"]
    config = parse([*args, "--gamma", "0.5"])
    flags = {name: tuple(v) if isinstance(v, list) else v for name, v in presets.load(preset).items()}
    assert (flags | {"gamma": 0.5}).items() <= config.flat().items()
    assert config.run.config == preset
    RunDir.at(str(tmp_path), "x").prepare(config)
    assert yaml.safe_load(RunDir.at(str(tmp_path), "x").config.read_text())["config"] == preset
    assert parse(args).run.config == preset


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("Pendulum-v1000", "Pendulum"),
        ("not_a_module:Env", "not_a_module"),
        (f"{__name__}:VECTOR", "no class or function"),
    ],
)
def test_what_is_wrong_with_an_environment_is_said_by_the_plan(env, sentence):
    config = parse(["--env", env])
    assert config == Config().replace(env=env)
    with pytest.raises(ValueError, match=sentence):
        make_plan(config)


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_is_a_valid_configuration(name):
    Config().replace(**presets.load(name))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("--num_worker 3", "unknown flag --num_worker: did you mean --num_workers?"),
        ("--n_steps 128", "unknown flag --n_steps: it is --rollout here"),
        ("--config dom_basic", "config is 'dom_basic': there is no such preset and no such file; did you mean 'doom_b"),
        ("--gamma", "gamma has no value: it must be a finite number"),
        ("--num_workers all", "num_workers is 'all': it must be a whole number or auto"),
        ("somewhere", "unrecognized options: somewhere"),
        ("--num_workers 2 --config vector", "env is not named: for example --env CartPole-v1"),
    ],
)
def test_a_wrong_flag_ends_with_status_2_and_one_sentence(args, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        parse(args.split())
    (said,) = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    assert said.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("program", "args", "sentence"),
    [
        ("sf_eval", "", "PATH is missing: name a run directory, such as train_dir/doom_basic"),
        ("sf_eval", "x --episode 3", "unknown flag --episode: did you mean --episodes?"),
        ("sf_report", "x --x rounds", "x is 'rounds': it must be "),
        ("sf_sweep", "x --train_dir=", "train_dir is empty: name a file or folder"),
    ],
)
def test_the_other_commands_do_so_too(program, args, sentence, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [program, *args.split()])
    with pytest.raises(SystemExit) as end:
        getattr(entry_points, program)()
    (said,) = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    assert said.startswith(f"error: {sentence}")


def test_a_number_with_an_exponent_is_a_whole_number_where_it_is_one():
    assert parse(["--env", "toy_bandit", "--train_for_env_steps", "1e6"]).run.train_for_env_steps == 1_000_000


def test_a_run_that_is_older_than_a_flag_goes_on_as_it_was(tmp_path):
    args = ["--env", "toy_bandit", "--train_dir", str(tmp_path)]
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    run_dir.prepare(parse(args))
    saved = yaml.safe_load(run_dir.config.read_text())
    for name in BEFORE_THE_FLAG:
        del saved[name]
    run_dir.config.write_text(yaml.safe_dump(saved))
    resumed = parse(args)
    assert {name: resumed.flat()[name] for name in BEFORE_THE_FLAG} == BEFORE_THE_FLAG
    assert (resumed.learner.bootstrap_truncated, resumed.model.critic_clock) == (True, False)
    new = parse([*args, "--experiment", "new"])
    assert (new.learner.bootstrap_truncated, new.model.critic_clock, new.model.pad_images) == ("auto", "auto", True)


@pytest.mark.parametrize(("before", "now"), [(True, "all"), (False, "none")])
def test_a_run_that_shared_its_rewards_with_all_or_none_goes_on_so(tmp_path, before, now):
    args = ["--env", "toy_match_rps", "--train_dir", str(tmp_path)]
    run_dir = RunDir.at(str(tmp_path), "toy_match_rps")
    run_dir.prepare(parse(args))
    saved = yaml.safe_load(run_dir.config.read_text())
    run_dir.config.write_text(yaml.safe_dump(saved | {"share_reward": before}))
    assert run_dir.saved_flags()["share_reward"] == now
    assert parse(args).environment.share_reward == now
    typed = parse([*args, "--experiment", "new", "--share_reward", str(before).lower()])
    assert typed.environment.share_reward == now


def test_teams_are_typed_as_json():
    teams = '[["player_0"], ["player_1"]]'
    typed = parse(["--env", "toy_match_rps", "--teams", teams, "--share_reward", "team", "--zero_sum", "true"])
    assert (typed.environment.teams, typed.environment.share_reward, typed.environment.zero_sum) == (
        teams,
        "team",
        True,
    )


def test_players_of_an_older_run_of_an_atari_match_still_see_raw_frames(tmp_path):
    args = ["--env", "pettingzoo:atari/pong_v3", "--train_dir", str(tmp_path), "--experiment", "match"]
    run_dir = RunDir.at(str(tmp_path), "match")
    new = parse(args)
    assert (new.environment.atari_raw, new.run.config) == (False, "atari")
    run_dir.prepare(new)
    assert not parse(args).environment.atari_raw
    saved = yaml.safe_load(run_dir.config.read_text())
    del saved["atari_raw"]
    run_dir.config.write_text(yaml.safe_dump(saved))
    assert parse(args).environment.atari_raw


def test_a_resumed_run_reads_the_configuration_it_was_started_with(tmp_path):
    started = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--rollout", "8", "--batch_size", "64"])
    RunDir.at(str(tmp_path), "toy_bandit").prepare(started)
    resumed = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--seed", "5"])
    assert (resumed.sampler.rollout, resumed.learner.batch_size, resumed.run.seed) == (8, 64, 5)


def test_a_run_is_not_resumed_on_another_environment(tmp_path, capsys):
    started = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--experiment", "x"])
    RunDir.at(str(tmp_path), "x").prepare(started)
    with pytest.raises(SystemExit) as end:
        parse(["--env", "toy_memory", "--train_dir", str(tmp_path), "--experiment", "x"])
    assert end.value.code == 2
    assert "was trained on 'toy_bandit'" in " ".join(capsys.readouterr().err.split())


def test_a_preset_for_a_run_that_is_there_is_refused_unless_it_is_the_one_it_has(tmp_path, capsys):
    here = ["--env", "toy_identity", "--train_dir", str(tmp_path)]
    RunDir.at(str(tmp_path), "toy_identity").prepare(parse([*here, "--config", "fast"]))
    assert parse([*here, "--config", "fast"]).run.config == "fast"
    assert parse(here).run.config == "fast"
    with pytest.raises(SystemExit):
        parse([*here, "--config", "doom"])
    assert "keeps the settings that it was started with: name another --experiment" in capsys.readouterr().err
    parse([*here, "--config", "doom", "--experiment", "other"])


def test_the_configuration_of_a_run_is_a_preset_for_another(tmp_path):
    run = RunDir.at(str(tmp_path), "toy_identity")
    run.prepare(parse(["--env", "toy_identity", "--train_dir", str(tmp_path), "--gamma", "0.5"]))
    again = ["--train_dir", str(tmp_path), "--config", str(run.config), "--experiment", "again"]
    config = parse(again)
    assert (config.run.env, config.learner.gamma, config.run.experiment_name) == ("toy_identity", 0.5, "again")
    with pytest.raises(ValueError, match=re.escape(f"did you mean {str(run.config)!r}?")):
        presets.load(str(run.path))


def test_more_processes_than_the_system_grants_descriptors_for_are_refused(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: None)
    config = Config().replace(env="toy_identity", num_envs_per_worker=2, device="cpu")
    make_plan(config.replace(num_workers=100))
    with pytest.raises(ValueError, match="system grants 1024: lower --num_workers"):
        make_plan(config.replace(num_workers=200))


def test_a_plan_sees_to_it_that_the_memory_of_a_run_has_descriptors_enough(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < 1024:
        pytest.skip("the system grants too few")
    in_use = max(int(fd) for fd in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 64, limits[1]))
    try:
        plan = make_plan(Config().replace(**{**SMALL, "num_workers": 40}, device="cpu"))
        allocate(plan.config, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


SMALL = {"env": "toy_identity", "num_workers": 1, "num_envs_per_worker": 2, "rollout": 8, "batch_size": 16}


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ({"num_envs_per_worker": 2**27}, "trajectories: lower --num_workers"),
        ({"batch_size": 2**33}, "batches of the learner: lower --batch_size"),
        ({"encoder_mlp_layers": (200_000, 200_000)}, "copies of the network, of 40,.* weights: lower the widths"),
        ({"core": "gru", "rnn_size": 4096, "num_envs_per_worker": 2**20}, "recurrent states: lower --rnn_size"),
    ],
)
def test_a_run_that_does_not_fit_into_memory_is_told_what_takes_most_of_it(flags, part):
    make_plan(Config().replace(**SMALL, device="cpu"))
    with pytest.raises(ValueError, match=part):
        make_plan(Config().replace(**{**SMALL, **flags}, device="cpu"))
