import pytest

from sf.envs.doom.shaping import (
    AGAINST_BOTS,
    HEALTH_AND_AMMO,
    HELD_WEAPON,
    MEDIKITS,
    SELF_PLAY,
    Price,
    Shaper,
    Shaping,
    Term,
    change_reward,
    held_weapon_reward,
)

NAMES = ["SELECTED_WEAPON", "SELECTED_WEAPON_AMMO", "DEAD", *dict.fromkeys(t.variable for t in AGAINST_BOTS.terms)]
START = {"SELECTED_WEAPON": 2, "SELECTED_WEAPON_AMMO": 50, "HEALTH": 100, "WEAPON2": 1, "AMMO2": 50}


def values(**changes: float) -> list[float]:
    return [float((START | changes).get(name, 0)) for name in NAMES]


def reward_of(shaping: Shaping, **changes: float) -> float:
    """Of one step in which these variables change, from `START`."""
    shaper = Shaper(shaping, NAMES)
    shaper.begin(values())
    return shaper.reward(values(**changes))


def test_a_medikit_is_worth_one_whatever_it_heals_and_lost_health_costs_nothing():
    shaper = Shaper(MEDIKITS, ["HEALTH"])
    shaper.begin([40])
    assert [shaper.reward([health]) for health in (65, 57, 100, 92)] == [1, 0, 1, 0]


def test_growth_and_loss_have_their_own_weights_up_to_a_maximum():
    prices = [Price(0, up=0.005, down=-0.003), Price(1, up=0.5, down=-0.25, max_change=6)]
    assert change_reward(prices, [50, 10], [70, 6]) == pytest.approx(20 * 0.005 - 4 * 0.25)
    assert change_reward(prices, [50, 10], [50, 10]) == 0
    assert change_reward(prices, [50, 10], [50, 1000]) == pytest.approx(3)
    assert change_reward(prices, [50, 1000], [50, 10]) == pytest.approx(-1.5)
    assert reward_of(HEALTH_AND_AMMO, HEALTH=90, AMMO2=60) == pytest.approx(-0.03 + 0.002)


@pytest.mark.parametrize(
    ("change", "against_bots", "in_self_play"),
    [
        ({"FRAGCOUNT": 1}, 1, 1),
        ({"FRAGCOUNT": -1}, -1.5, -0.001),
        ({"DEATHCOUNT": 1, "DEAD": 1}, -0.75, -1),
        ({"HITCOUNT": 3}, 0.03, 0),
        ({"HITCOUNT": 9}, 0.05, 0),
        ({"DAMAGECOUNT": 40}, 0.12, 0.4),
        ({"DAMAGECOUNT": 500}, 0.6, 2),
        ({"HEALTH": 125}, 0.125, 0.25),
        ({"HEALTH": 80}, -0.06, -0.2),
        ({"ARMOR": 100}, 0.5, 0.5),
        ({"WEAPON1": 1}, 0.02, 0.02),
        ({"WEAPON4": 1}, 0.1, 0.1),
        ({"WEAPON7": 1}, 0.2, 0.2),
        ({"WEAPON2": 0}, -0.01, -0.01),
        ({"AMMO2": 40}, -0.001, -0.001),
        ({"AMMO6": 20}, 0.04, 0.04),
    ],
)
def test_a_match_is_shaped_by_the_weights_of_the_paper(change, against_bots, in_self_play):
    assert reward_of(AGAINST_BOTS, **change) == pytest.approx(against_bots)
    assert reward_of(SELF_PLAY, **change) == pytest.approx(in_self_play)


def test_nothing_is_paid_for_the_step_in_which_a_player_comes_to_life_again():
    shaper = Shaper(AGAINST_BOTS, NAMES)
    shaper.begin(values())
    assert shaper.reward(values(HEALTH=0, DEAD=1, DEATHCOUNT=1)) == pytest.approx(-100 * 0.003 - 0.75)
    assert shaper.reward(values(DEATHCOUNT=1, ARMOR=50, WEAPON5=1)) == 0
    assert shaper.reward(values(DEATHCOUNT=1, ARMOR=60, WEAPON5=1)) == pytest.approx(0.05)


def test_who_dies_and_comes_to_life_in_one_step_is_paid_for_the_score_alone():
    """As with a frameskip above 2: a player is dead for two tics. Its new health and weapons are no gain or loss."""
    shaper = Shaper(SELF_PLAY, NAMES)
    shaper.begin(values(HEALTH=20, WEAPON5=1))
    assert shaper.reward(values(HEALTH=100, DEATHCOUNT=1, FRAGCOUNT=1, DAMAGECOUNT=30)) == pytest.approx(1 - 1 + 0.3)
    assert shaper.reward(values(HEALTH=100, DEATHCOUNT=1, FRAGCOUNT=1, DAMAGECOUNT=30)) == 0


def test_a_weapon_pays_from_the_fifth_step_in_hand_while_it_has_ammunition():
    shaper = Shaper(Shaping((), {HELD_WEAPON: 0.0002}), NAMES)
    shaper.begin(values())
    assert [shaper.reward(values()) for _ in range(6)] == [0, 0, 0, 0, 0.0002, 0.0002]
    assert shaper.reward(values(SELECTED_WEAPON_AMMO=0)) == 0
    plasma = [shaper.reward(values(SELECTED_WEAPON=6)) for _ in range(6)]
    assert plasma == pytest.approx([0, 0, 0, 0, 0, 0.002])
    assert held_weapon_reward(0.0002, slot=-1, ammo=9, held_steps=99) == 0


def test_weights_can_be_changed_and_come_in_the_order_of_their_names():
    shaper = Shaper(Shaping((Term("HEALTH", "health"),), {"health_up": 1, "health_down": -1}), ["HEALTH"])
    shaper.begin([10])
    assert shaper.reward([15]) == 5
    shaper.set_weights([2, -3])
    assert shaper.reward([16]) == 2
    assert shaper.reward([15]) == -3
    with pytest.raises(ValueError, match="zip"):
        shaper.set_weights([1])
