"""Wrong settings of a population are said in one sentence; generations depend on env steps alone."""

import pytest

from sf.config.flags.population import PopulationConfig


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("pbt_replace_reward_gap_absolute", float("nan")),
        ("pbt_replace_fraction", 0.6),
        ("pbt_perturb_min", 1.3),  # above pbt_perturb_max
        ("pbt_target_objective", ""),
    ],
)
def test_a_broken_rule_names_the_flag(flag, value):
    with pytest.raises(ValueError, match=f"{flag} is"):
        PopulationConfig(**{flag: value})


def test_generations_begin_at_the_start_of_mutation_and_follow_each_other_by_the_period():
    config = PopulationConfig(num_policies=2, with_pbt=True, pbt_start_mutation=100, pbt_period_env_steps=10)
    assert [config.generation_at(env_steps) for env_steps in (0, 99, 100, 109, 110, 135)] == [0, 0, 1, 1, 2, 4]


def test_without_population_based_training_no_generation_is_ever_due():
    assert PopulationConfig(num_policies=4).generation_at(10**12) == 0
    with pytest.raises(ValueError, match="2 policies"):
        PopulationConfig(with_pbt=True)
