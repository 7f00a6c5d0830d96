"""Teachers answer with the parameters of a distribution, whatever they are."""

import sys

import numpy as np
import pytest
from untrained import untrained

from sf import envs
from sf.config import Config
from sf.config.trust import named_code
from sf.envs import UsageError
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.teachers import Teachers
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.run.startup.teachers import find_teachers, keep
from sf.storage import checkpoint

RIGHT = np.array([0, 3, 1, 2])  # the number that `toy_identity` shows
OBS = {"obs": np.eye(4, dtype=np.float32)[RIGHT]}
FIRST, WHO = np.ones(4, bool), np.arange(4)


def echo(obs):
    return int(obs)


def probabilities(params):
    exponentials = np.exp(params - params.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.safetensors"
    checkpoint.write(path, untrained("toy_identity"))
    return path


@pytest.fixture
def scripted():
    config = Config().replace(env="toy_identity")
    spec = envs.describe("toy_identity", config.environment)
    return Opponent("test_teachers:echo", "toy_identity", config.environment, spec.native_obs_space, spec.action_space)


def said(*sources):
    return probabilities(Teachers(sources).here(4, 0, "cpu", bfloat16=False, compiles=False).params(OBS, FIRST, WHO))


def test_a_policy_says_its_probabilities_a_function_its_action_and_several_teach_in_turn(policy, scripted):
    own = TorchPolicy(checkpoint.load(policy), "policy").probabilities(OBS)
    np.testing.assert_allclose(said(policy), own, atol=1e-6)
    assert (said(scripted) == np.eye(4)[RIGHT]).all()
    both = said(policy, scripted)
    np.testing.assert_allclose(both[::2], own[::2], atol=1e-6)
    assert (both[1::2] == np.eye(4)[RIGHT][1::2]).all()


def test_a_recurrent_policy_remembers_each_actor(tmp_path):
    path = tmp_path / "gru.safetensors"
    checkpoint.write(path, untrained("toy_identity", core="gru"))
    teacher = Teachers([path]).here(4, 0, "cpu", bfloat16=False, compiles=False)
    began = teacher.params(OBS, FIRST, WHO)
    later = teacher.params({"obs": OBS["obs"][:2]}, np.array([True, False]), WHO[:2])
    np.testing.assert_allclose(later[0], began[0], rtol=1e-6)
    assert not np.allclose(later[1], began[1])


def test_a_run_keeps_its_teachers_and_goes_on_without_the_originals(tmp_path, policy):
    config = Config().replace(env="toy_identity", teacher=(str(policy), "test_teachers:echo"))
    spec, run_dir = envs.describe("toy_identity", config.environment), tmp_path / "run"
    run_dir.mkdir()
    sources = config.learner.teacher
    first = keep(sources, find_teachers(config, [spec], run_dir), run_dir)
    checkpoint.write(policy.with_name("other.safetensors"), untrained("toy_identity", seed=1))
    other = (str(policy.with_name("other.safetensors")), sources[1])
    changed = keep(other, find_teachers(config.replace(teacher=other), [spec], run_dir), run_dir)
    assert not np.allclose(said(*changed.each)[::2], said(*first.each)[::2])
    policy.unlink()
    again = keep(sources, find_teachers(config, [spec], run_dir), run_dir)
    assert first.each[0] == again.each[0]
    assert (said(*again.each)[1::2] == np.eye(4)[RIGHT][1::2]).all()
    with pytest.raises(UsageError, match="teacher"):
        find_teachers(config.replace(restart_behavior="restart"), [spec], run_dir)


def test_a_teacher_runs_no_code_of_somebody_else(tmp_path):
    saved = untrained("toy_identity")
    saved.state["config"]["encoder"] = "spare_encoder:Spare"
    checkpoint.write(tmp_path / "theirs.safetensors", saved)
    config = Config().replace(env="toy_identity", teacher=(str(tmp_path / "theirs.safetensors"),))
    sys.modules.pop("spare_encoder", None)
    with pytest.raises(UsageError, match="trust"):
        find_teachers(config, [envs.describe("toy_identity", config.environment)], tmp_path)
    assert "spare_encoder" not in sys.modules
    (code,) = named_code({"teacher": ("test_teachers:echo", "openspiel:mcts:10", "zoo/CartPole-v1")})
    assert (code.flag, code.name) == ("teacher", "test_teachers:echo")


@pytest.mark.parametrize(
    ("env", "teacher", "words"),
    [
        ("toy_identity", "self", "init_from"),
        ("toy_identity", "nowhere", "nowhere"),
        ("toy_identity", "test_teachers:ecco", "did you mean"),
        ("CartPole-v1", "{policy}", "actions"),
        ("toy_bandit", "{policy}", "obs"),
        ("Pendulum-v1", "test_teachers:echo", "continuous"),
    ],
)
def test_a_teacher_that_cannot_teach_is_said_before_anything_starts(tmp_path, policy, env, teacher, words):
    config = Config().replace(env=env, teacher=(teacher.format(policy=policy),))
    with pytest.raises(UsageError, match=words):
        find_teachers(config, [envs.describe(env, config.environment)], tmp_path)


def test_who_acts_is_one_of_three():
    assert [Config().replace(teacher_on=on).learner.teaching_share for on in ("student", "teacher", "mix:0.3")] == [
        0,
        1,
        0.3,
    ]
    for wrong in ("both", "mix", "mix:2", "mix:half", "teacher:0.5"):
        with pytest.raises(UsageError, match="teacher_on"):
            Config().replace(teacher_on=wrong)
