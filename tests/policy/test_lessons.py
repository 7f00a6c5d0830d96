"""What a teacher says to the actors of a policy worker, and what is written where it acts."""

import gymnasium as gym
import numpy as np
import pytest

from sf.envs import EnvSpec
from sf.policy.lessons import Lessons
from sf.shared.rows import slot_fields
from sf.shared.teaching import PARAMS, Teaching
from sf.system.arrays import SharedArrays

SPEC = EnvSpec(gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (2,), np.float32)), gym.spaces.Discrete(3))
NUM_SLOTS = 200
ANSWERS = {"discrete": np.zeros((NUM_SLOTS, 1), np.int32), "continuous": np.zeros((NUM_SLOTS, 0), np.float32)}
ANSWERS |= {"log_prob": np.full(NUM_SLOTS, -9.0, np.float32), "value": np.full(NUM_SLOTS, 5.0, np.float32)}


class Doubtful:
    """Takes the second choice with a probability of 0.8, and the last one else."""

    def params(self, obs, first, who):
        assert (obs["obs"][:, 0] == who).all()
        return np.log(np.tile([1e-12, 0.8, 0.2], (len(who), 1))).astype(np.float32)


def lessons(share, falls=False):
    rows = SharedArrays(slot_fields(SPEC, NUM_SLOTS, 4))
    rows["obs/obs"][..., 0] = np.arange(NUM_SLOTS)[:, None]
    teaching = Teaching.allocate(1, share, falls)
    return teaching, Lessons(Doubtful(), teaching, 0, SPEC, rows, (1, 2))


def ask(of, t):
    slots = np.arange(NUM_SLOTS)
    return of.added_to(ANSWERS, slots, np.full(NUM_SLOTS, t), slots, np.zeros(NUM_SLOTS, bool))


def acts_in(answers):
    return answers["log_prob"] > -9.0


def test_a_student_that_acts_is_told_what_the_teacher_would_do():
    _, of = lessons(0.0)
    answers = ask(of, 0)
    assert not acts_in(answers).any()
    np.testing.assert_allclose(np.exp(answers[PARAMS]), np.tile([0, 0.8, 0.2], (NUM_SLOTS, 1)), atol=1e-6)


def test_a_teacher_that_acts_does_so_for_whole_trajectories_with_its_own_probabilities():
    _, of = lessons(0.5)
    answers = ask(of, 0)
    acts = acts_in(answers)
    assert 0.35 < acts.mean() < 0.65
    discrete = answers["discrete"][acts, 0]
    assert {*discrete} == {1, 2}
    assert 0.65 < (discrete == 1).mean() < 0.95
    np.testing.assert_allclose(answers["log_prob"][acts], np.log(np.where(discrete == 1, 0.8, 0.2)), rtol=1e-4)
    assert (answers["discrete"][~acts] == 0).all()
    assert (answers["value"] == 5.0).all()
    for t in (1, 2, 3):
        assert (acts_in(ask(of, t)) == acts).all()
    of_versions = []
    for version in (3, 4, 3):
        of.begin_version(version)
        of_versions.append(acts_in(ask(of, 0)).tolist())
    assert of_versions[0] == of_versions[2] != of_versions[1]


@pytest.mark.parametrize(("falls", "share"), [(True, 0.25), (False, 1.0)])
def test_what_is_left_of_the_teacher_says_how_often_it_acts(falls, share):
    teaching, of = lessons(1.0, falls)
    teaching.write(0, 0.25)
    assert abs(acts_in(ask(of, 0)).mean() - share) < 0.1
    teaching.write(0, 0.0)
    assert acts_in(ask(of, 1)).any()  # its trajectories end as they began
    assert ask(of, 0) is ANSWERS
