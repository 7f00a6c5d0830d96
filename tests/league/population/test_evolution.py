"""Who is mutated, who is replaced, by whom; and that a population finds what a single policy does not."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sf.config.flags.population import PopulationConfig
from sf.league.population.evolution import RANGES, SHAPING, Decision, Member, evolve

RULES = PopulationConfig(num_policies=8, with_pbt=True)
ALWAYS = dataclasses.replace(RULES, pbt_mutation_rate=1.0)
NEVER = dataclasses.replace(RULES, pbt_mutation_rate=0.0)


def population(*objectives):
    """Every policy has a learning rate of its own, so what a policy has says whose it was."""
    return [Member(idx, objective, {"learning_rate": 1e-4 + 1e-5 * idx}) for idx, objective in enumerate(objectives)]


def generation(members, rules=RULES, seed=0):
    return {decision.policy_id: decision for decision in evolve(members, rules, np.random.default_rng(seed))}


def copies(decisions):
    return {policy_id: d.copies for policy_id, d in decisions.items() if d.copies is not None}


def mutated(name, value, seed=0, rules=ALWAYS):
    """`value` after one mutation of the second policy of two that are equally good."""
    members = [Member(0, 1.0, {}), Member(1, 0.99, {name: value})]
    decisions = generation(members, rules, seed)
    return decisions[1].hyperparameters[name] if decisions else value


# Ranks


def test_the_best_stay_the_middle_is_mutated_and_the_worst_are_replaced_by_one_of_the_best():
    decisions = generation(population(10, 100, 98, 40, 99, 20, 50, 30), ALWAYS)
    assert decisions.keys() == {0, 3, 5, 6, 7}  # the best share is 0.3 x 8, rounded up: 1, 4, 2
    assert copies(decisions).keys() == {0, 5, 7}
    assert set(copies(decisions).values()) <= {1, 2, 4}


def test_who_is_replaced_receives_the_hyperparameters_too_which_are_mutated():
    decisions = generation(population(1.0, 0.1), NEVER)
    assert decisions == {1: Decision(1, copies=0, hyperparameters={"learning_rate": 1e-4})}
    received = generation(population(1.0, 0.1), ALWAYS)[1].hyperparameters["learning_rate"]
    assert max(received / 1e-4, 1e-4 / received) == pytest.approx(1.15, abs=0.05001)


@pytest.mark.parametrize(
    ("objectives", "flags", "expected"),
    [
        ((-100.0, -1.0), {}, {0: 1}),
        ((-10.0, -10.9), {}, {}),  # the relative gap is a share of the size of the best
        ((-10.0, -11.1), {}, {1: 0}),
        ((0.6, 0.31), {"pbt_replace_reward_gap": 0.5}, {}),
        ((0.6, 0.29), {"pbt_replace_reward_gap": 0.5}, {1: 0}),
        ((100.0, 94.0), {"pbt_replace_reward_gap_absolute": 5.0}, {}),  # by less than 10 %
        ((10.0, 6.0), {"pbt_replace_reward_gap_absolute": 5.0}, {}),
        ((10.0, 4.0), {"pbt_replace_reward_gap_absolute": 5.0}, {1: 0}),
        *(((objective,) * 8, {"pbt_mutation_rate": 1.0}, {}) for objective in (0.0, 1.0, -1.0)),
    ],
)
def test_a_policy_is_replaced_if_it_is_far_below_the_best(objectives, flags, expected):
    assert copies(generation(population(*objectives), dataclasses.replace(RULES, **flags))) == expected


def test_who_is_far_below_the_best_is_copied_by_nobody():
    members = population(100.0, 3.0, 2.0, 1.0)  # the best share is two policies
    assert all(copies(generation(members, seed=seed)) == {2: 0, 3: 0} for seed in range(20))


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_a_policy_whose_objective_is_not_known_is_left_alone_and_does_not_rank(unknown):
    assert copies(generation(population(unknown, 1.0, 0.1), NEVER)) == {2: 1}
    for members in (population(unknown, unknown), population(1.0), []):
        assert generation(members, ALWAYS) == {}


def test_the_share_of_those_that_are_replaced_may_be_0_and_is_not_one_more_by_rounding():
    decisions = generation(population(1.0, 100.0, 3.0), dataclasses.replace(ALWAYS, pbt_replace_fraction=0.0))
    assert decisions.keys() == {0, 2}
    assert copies(decisions) == {}
    rules = dataclasses.replace(NEVER, pbt_replace_fraction=0.07)
    assert len(copies(generation(population(*range(100)), rules))) == 7


# Mutations


def test_a_factor_leads_up_or_down_and_lies_between_its_bounds():
    factors = [mutated("value_loss_coeff", 0.5, seed) / 0.5 for seed in range(200)]
    up = [factor for factor in factors if factor > 1]
    assert 70 < len(up) < 130
    assert all(1.1 <= max(factor, 1 / factor) <= 1.2 for factor in factors)


def test_each_hyperparameter_is_mutated_with_the_probability_asked_for():
    names = [f"{SHAPING}{idx}" for idx in range(1000)]
    members = [Member(0, 1.0, {}), Member(1, 0.99, dict.fromkeys(names, 1.0))]
    changed = [value for value in generation(members)[1].hyperparameters.values() if value != 1.0]
    assert 110 < len(changed) < 190


def test_the_discount_is_mutated_only_where_asked_for_and_by_its_horizon():
    assert mutated("gamma", 0.99) == 0.99
    gamma = mutated("gamma", 0.99, rules=dataclasses.replace(ALWAYS, pbt_optimize_gamma=True))
    horizon = 1 / (1 - gamma)
    assert max(horizon / 100, 100 / horizon) == pytest.approx(1.15, abs=0.05001)


@pytest.mark.parametrize(("name", "value"), [("exploration_loss_coeff", 0.0), ("shaping/ARMOR", 0.0), ("gamma", 1.0)])
def test_what_is_switched_off_stays_off(name, value):
    assert mutated(name, value, rules=dataclasses.replace(ALWAYS, pbt_optimize_gamma=True)) == value


def test_a_value_outside_of_its_range_never_jumps_and_only_comes_nearer():
    for seed in range(20):
        assert 0.5 / 1.2 <= mutated("learning_rate", 0.5, seed) <= 0.5
        assert 1e-9 <= mutated("learning_rate", 1e-9, seed) <= 1.2e-9


# Whatever the population

names = [name for name in RANGES if name != SHAPING] + [f"{SHAPING}HEALTH", f"{SHAPING}DEATHCOUNT"]


def within_range(name):
    bounds = RANGES[SHAPING if name.startswith(SHAPING) else name]
    sizes = st.floats(bounds.low, bounds.high)
    if bounds.of_complement:
        return sizes.map(lambda size: 1.0 - size)
    return sizes.map(lambda size: -size) if "DEATH" in name else sizes


members_lists = st.lists(
    st.tuples(
        st.none() | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]),
        st.fixed_dictionaries({name: within_range(name) for name in names}),
    ),
    max_size=12,
).map(lambda rows: [Member(idx, objective, values) for idx, (objective, values) in enumerate(rows)])
rules_of_all_kinds = st.builds(
    PopulationConfig,
    pbt_replace_fraction=st.floats(0.0, 0.5),
    pbt_mutation_rate=st.sampled_from([0.0, 0.15, 1.0]),
    pbt_replace_reward_gap=st.sampled_from([0.0, 0.1, 0.5, 3.0]),
    pbt_replace_reward_gap_absolute=st.sampled_from([0.0, 1e-6, 10.0]),
    pbt_optimize_gamma=st.booleans(),
)
seeds = st.integers(0, 2**32)


@settings(max_examples=60)
@given(members_lists, rules_of_all_kinds, seeds)
def test_the_best_are_left_alone_and_whoever_is_copied_is_one_of_them(members, rules, seed):
    decisions = generation(members, rules, seed)
    assert len(decisions) == len(evolve(members, rules, np.random.default_rng(seed)))  # at most one for a policy
    ranked = [m.objective for m in members if m.objective is not None]
    untouched = [m for m in members if m.objective is not None and m.policy_id not in decisions]
    assert not ranked or any(m.objective == max(ranked) for m in untouched)
    for policy_id, copied in copies(decisions).items():
        assert copied not in decisions
        assert members[copied].objective > members[policy_id].objective
    assert all(d.copies is not None or d.hyperparameters != members[i].hyperparameters for i, d in decisions.items())


@settings(max_examples=60)
@given(members_lists, rules_of_all_kinds, seeds)
def test_mutations_stay_within_their_ranges_and_keep_all_names(members, rules, seed):
    for decision in generation(members, rules, seed).values():
        assert decision.hyperparameters.keys() == set(names)
        for name, value in decision.hyperparameters.items():
            bounds = RANGES[SHAPING if name.startswith(SHAPING) else name]
            size = 1.0 - value if bounds.of_complement else abs(value)
            assert bounds.low * (1 - 1e-9) <= size <= bounds.high * (1 + 1e-9)
            assert (value < 0) == ("DEATH" in name)


# The whole of it

OPTIMUM = 7e-4
NOISE = 0.05  # of a measured objective


def quality(learning_rate):
    """What training with this learning rate leads to: 1 at the optimum, 0.61 a factor of 3 away from it."""
    return np.exp(-0.5 * (np.log(learning_rate / OPTIMUM) / np.log(3)) ** 2)


def evolved(rates, rng, num_generations=150):
    """Learning rates [P] and skills [P] of a population that began with these rates and no skill."""
    rates, skills = rates.copy(), np.zeros(len(rates))
    for _ in range(num_generations):
        skills += 0.3 * (quality(rates) - skills)
        measured = skills + rng.normal(0.0, NOISE, len(rates))
        members = [Member(idx, measured[idx], {"learning_rate": rate}) for idx, rate in enumerate(rates)]
        for decision in evolve(members, RULES, rng):
            rates[decision.policy_id] = decision.hyperparameters["learning_rate"]
            if decision.copies is not None:
                skills[decision.policy_id] = skills[decision.copies]
    return rates, skills


@pytest.mark.parametrize("rates", [np.geomspace(1e-5, 1e-2, 8), np.full(8, 1e-4)], ids=["three decades", "far away"])
@pytest.mark.parametrize("seed", range(2))
def test_learning_rates_come_to_the_planted_optimum(rates, seed):
    median_alone = np.median(quality(rates))  # what the median policy comes to without a population
    assert median_alone < 0.5
    rates, skills = evolved(rates, np.random.default_rng(seed))
    assert OPTIMUM / 2 < np.median(rates) < OPTIMUM * 2
    assert np.median(skills) > 0.8


def test_an_option_of_the_environment_stays_in_the_range_that_it_declares():
    members = [Member(0, 1.0, {}), Member(1, 0.99, {"env.size": 8.9})]
    found = {
        evolve(members, ALWAYS, np.random.default_rng(seed), {"env.size": (1, 9)})[0].hyperparameters["env.size"]
        for seed in range(20)
    }
    assert max(found) == 9
    assert 8.9 / 1.2 <= min(found) <= 8.9 / 1.1
