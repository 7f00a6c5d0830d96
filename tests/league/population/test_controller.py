"""A population that goes on after its environment has changed; and who is copied, by what their episodes say."""

from types import SimpleNamespace

import numpy as np
import pytest

from sf import envs
from sf.config import Config
from sf.config.schedules import Stage, parse
from sf.league.population.controller import Population
from sf.metrics.latest_episodes import EndedEpisode, LatestEpisodes
from sf.metrics.policy_progress import PolicyProgress
from sf.run.startup.schedules import evolved_options
from sf.shared.scheduled import Scheduled
from sf.storage.run_dir import RunDir
from sf.system.arrays import Field, SharedArrays


def test_options_that_evolve_are_told_to_rollout_workers_and_annealed_flags_do_not_evolve(tmp_path):
    flags = {"env_options": {"size": 3}, "pbt_optimize_options": ["size"], "anneal": ["gamma=0.9:0.99@100"]}
    flags |= {"pbt_mutation_rate": 1.0, "pbt_start_mutation": 1, "pbt_replace_fraction": 0.0}
    config = Config().replace(env="sized_env:Sized", num_policies=2, with_pbt=True, **flags)
    spec = envs.describe("sized_env:Sized", config.environment)
    schedules = (*parse(config.run.anneal), *evolved_options(config, spec))
    scheduled = Scheduled.allocate(schedules, num_policies=2, num_actors=4)
    latest = LatestEpisodes(num_actors=2, num_policies=2, num_wanted=1)
    policies = [PolicyProgress(policy_id, latest, stats_avg=1) for policy_id in range(2)]
    for policy_id, policy in enumerate(policies):
        latest.add(EndedEpisode(float(policy_id), 1, 1, {}, policy_id, actor=policy_id, began=0.0))
        policy.env_steps = 1
    progress = SimpleNamespace(has_begun=True, policies=policies)

    def begin():
        return Population(config, spec, RunDir(tmp_path), progress, lambda *args, **fields: None, None, scheduled)

    population = begin()
    assert {"gamma", "env.size"} & population.hyperparameters_of_learner(0).keys() == set()
    population._generation = 0
    population.evolve_if_due()
    scheduled.write(0, Stage(50))
    assert scheduled.values_of(1) == {"gamma": 0.9, "env.size": 3.0}  # the best stays
    size = scheduled.values_of(0)["env.size"]
    assert 1.1 <= max(size / 3, 3 / size) <= 1.2
    assert scheduled.has_final_options(0)
    scheduled.evolve(0, {"env.size": 0.0})
    begin()  # a resumed run
    assert scheduled.values_of(0)["env.size"] == size


@pytest.fixture
def begin(tmp_path):
    """A start of the run, with these shaped rewards: what a learner is given, and the weights [P, K] of them."""
    config = Config().replace(env="toy_bandit", num_policies=2, with_pbt=True)
    described = envs.describe("toy_bandit", config.environment)

    def begin(**shaping):
        spec = SimpleNamespace(**{**vars(described), "shaping": shaping})
        weights = SharedArrays([Field("weights", (2, len(shaping)), "float32")])
        population = Population(config, spec, RunDir(tmp_path), None, lambda *args, **fields: None, weights)
        return population.hyperparameters_of_learner(0), weights["weights"].tolist()

    return begin


def test_a_shaped_reward_that_is_new_has_its_first_weight_and_one_that_is_gone_is_left_out(begin):
    learner, weights = begin(kills=1.0)
    assert weights == [[1.0]] * 2
    assert "gamma" in learner
    assert begin(kills=5.0, deaths=-2.0) == (learner, [[1.0, -2.0]] * 2)
    assert begin(deaths=-2.0) == (learner, [[-2.0]] * 2)


@pytest.fixture
def copied(tmp_path):
    """One generation of two policies, from the return and the statistics of each of their episodes: who copies whom."""

    def copied(*episodes, **flags):
        config = Config().replace(env="toy_match_rps", num_policies=2, with_pbt=True, pbt_start_mutation=1, **flags)
        spec = envs.describe("toy_match_rps", config.environment)
        latest = LatestEpisodes(num_actors=2, num_policies=2, num_wanted=len(episodes[0]))
        policies = [PolicyProgress(policy_id, latest, stats_avg=len(episodes[0])) for policy_id in range(2)]
        progress = SimpleNamespace(has_begun=True, policies=policies)
        orders = {}
        population = Population(
            config, spec, RunDir(tmp_path), progress, lambda idx, **order: orders.update({idx: order}), None
        )
        population.evolve_if_due()  # nothing is due at 0
        for policy_id, own in enumerate(episodes):
            for paid, stats in own:
                latest.add(EndedEpisode(paid, 1, 1, stats, policy_id, actor=policy_id, began=0.0))
            policies[policy_id].env_steps = 1
        population.evolve_if_due()
        return {idx: order["copies"] for idx, order in orders.items() if order["copies"] is not None}

    return copied


@pytest.mark.parametrize("judged_by", ["return", "true_objective", "win_rate"])
def test_nobody_is_copied_for_what_is_noise_in_matches_whose_returns_add_up_to_zero(copied, judged_by):
    rng = np.random.default_rng(0)
    returns = rng.permutation([1.0] * 515 + [-1.0] * 485)  # of one; the other's are the opposite

    def episodes(returns):
        stats = {"true_objective": returns, "win_rate": (returns + 1) / 2}.get(judged_by)
        return [(paid, {} if stats is None else {judged_by: stats[idx]}) for idx, paid in enumerate(returns.tolist())]

    assert returns.mean() == pytest.approx(0.03)
    assert copied(episodes(-returns), episodes(returns)) == {}


@pytest.mark.parametrize(
    ("objective", "flags", "expected"),
    [
        ("win_rate", {}, {1: 0}),
        ("win_rate", {"pbt_target_objective": "return"}, {0: 1}),
        ("true_objective", {}, {0: 1}),
    ],
)
def test_matches_are_ranked_by_wins_unless_there_is_an_objective_or_another_is_asked_for(
    copied, objective, flags, expected
):
    first, second = (
        [(paid, {"win_rate": won, objective: won if objective == "win_rate" else paid}) for paid, won in each * 10]
        for each in (3 * [(-1.0, 0.0)] + 7 * [(1.0, 1.0)], 7 * [(-0.1, 0.0)] + 3 * [(9.0, 1.0)])  # rarely, and much
    )
    assert copied(first, second, **flags) == expected
