"""Tables of units that the games cannot be played with."""

from __future__ import annotations

import pytest

from sf.envs import UsageError
from sf.envs.rts import UNITS, RtsEnv, Unit


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        (Unit("scout", made_by="barrack"), "'scout': made_by is 'barrack': one of"),
        (Unit("melee_attacker", made_by="barracks", is_troop=True), "two rows 'melee_attacker'"),
        (Unit("scout", hp=0), "hp is 0: an integer from 1"),
        (Unit("scout", cost=-50), "cost is -50: an integer from 0"),
        (Unit("scout", build_ticks=2.5), "build_ticks is 2.5: an integer"),
        (Unit("scout", speed=float("nan")), "speed is nan: a number from 0"),
        (Unit("scout", sight=float("inf")), "sight is inf: a number from 0"),
    ],
)
def test_a_unit_that_the_games_cannot_have_gets_a_sentence(unit, sentence):
    with pytest.raises(UsageError, match=sentence):
        RtsEnv(units=(*UNITS, unit), actions="by_type")


def test_a_kind_with_commands_of_its_own_is_no_troop_of_the_barracks():
    with pytest.raises(UsageError, match="unit 'worker': made_by is 'barracks', which is for troops"):
        RtsEnv(units=(UNITS[0]._replace(made_by="barracks"), *UNITS[1:]), actions="by_type")
