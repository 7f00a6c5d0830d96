import pytest

from envs.doom.shaping import HEALTH_AND_AMMO, MEDIKITS, Shaping, shaped_reward


def test_growth_and_loss_have_their_own_weights():
    shaping = [(0, Shaping("HEALTH", up=0.005, down=-0.003)), (1, Shaping("AMMO2", up=0.5, down=-0.25))]
    assert shaped_reward(shaping, [50, 10], [70, 6]) == pytest.approx(20 * 0.005 - 4 * 0.25)
    assert shaped_reward(shaping, [50, 10], [50, 10]) == 0


def test_a_change_counts_up_to_its_maximum_in_both_directions():
    shaping = [(0, Shaping("DAMAGECOUNT", up=0.01, down=-0.02, max_change=200))]
    assert shaped_reward(shaping, [0], [1000]) == pytest.approx(2)
    assert shaped_reward(shaping, [1000], [0]) == pytest.approx(-4)


def test_a_medikit_is_worth_one_whatever_it_heals_and_lost_health_costs_nothing():
    shaping = [(0, MEDIKITS[0])]
    assert shaped_reward(shaping, [40], [65]) == 1
    assert shaped_reward(shaping, [95], [100]) == 1
    assert shaped_reward(shaping, [95], [87]) == 0


def test_ammunition_of_a_stronger_weapon_is_worth_more():
    up = {item.variable: item.up for item in HEALTH_AND_AMMO}
    assert [up[f"AMMO{slot}"] for slot in (2, 5, 7)] == pytest.approx([0.0002, 0.001, 0.002])
