"""A population that goes on after its environment has changed."""

from types import SimpleNamespace

import pytest

from sf import envs
from sf.arrays import Field, SharedArrays
from sf.config import Config
from sf.population.controller import Population
from sf.storage.run_dir import RunDir


@pytest.fixture
def begin(tmp_path):
    """A start of the run, with these shaped rewards: what a learner is given, and the weights [P, K] of them."""
    config = Config().replace(env="toy_bandit", num_policies=2, with_pbt=True)
    described = envs.describe("toy_bandit", config.environment)

    def begin(**shaping):
        spec = SimpleNamespace(**{**vars(described), "shaping": shaping})
        weights = SharedArrays([Field("weights", (2, len(shaping)), "float32")])
        population = Population(config, spec, RunDir(tmp_path), None, weights, lambda *args, **fields: None, print)
        return population.hyperparameters_of_learner(0), weights["weights"].tolist()

    return begin


def test_a_shaped_reward_that_is_new_has_its_first_weight_and_one_that_is_gone_is_left_out(begin):
    learner, weights = begin(kills=1.0)
    assert weights == [[1.0]] * 2
    assert "gamma" in learner
    assert begin(kills=5.0, deaths=-2.0) == (learner, [[1.0, -2.0]] * 2)
    assert begin(deaths=-2.0) == (learner, [[-2.0]] * 2)
