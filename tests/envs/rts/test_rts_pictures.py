"""Pictures hide what their viewer is not shown."""

from __future__ import annotations

from rts_games import alive

from sf.envs import EnvOptions, make_rendered_group
from sf.envs.rts.engine.units import WORKER
from sf.envs.rts.picture import _SIDES as SIDES
from sf.envs.spaces.observations import obs_arrays


def test_a_person_sees_no_more_of_a_match_than_its_player():
    group = make_rendered_group("rts_mini_match", 1, EnvOptions(), seed=0, first_env_idx=0)
    group.reset({key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, 2).items()})
    pictures = group.present()
    for player in range(2):
        group.show_to(player)
        pictures += group.present()
    brightness = [float(picture[:480].mean()) for picture in pictures]
    assert brightness[0] > max(brightness[1:])
    units = alive(group._group.arena.games)
    for player, picture in enumerate(pictures[1:]):
        for unit in units[units["kind"] == WORKER]:
            x, y = int((unit["x"] + 10) * 24), int((10 - unit["y"]) * 24)
            is_shown = (picture[y - 4 : y + 4, x - 4 : x + 4] == SIDES[unit["owner"]]).all(-1).any()
            assert is_shown == (unit["owner"] == player)
