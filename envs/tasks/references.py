"""The scores by which returns of tasks are compared: those of random actions, and of a reference, with their sources.

A normalised score is 0 for random actions and 1 for the reference. An environment that is not in the table has none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

RETURN, SCORE = "return/", "score/"
"""Before the name of a task among the statistics of an episode: its return, and the same normalised."""


class Reference(NamedTuple):
    """Mean returns of an environment, and where they were published."""

    random_score: float
    reference_score: float
    source: str

    def normalized(self, episode_return: float) -> float:
        """Returns 0 for the return of random actions, and 1 for that of the reference."""
        return (episode_return - self.random_score) / (self.reference_score - self.random_score)


def known_reference(env_id: str) -> Reference | None:
    """Returns the scores of an environment, or None. Atari games have the same ones in all their spellings."""
    game = _ATARI_NAME.fullmatch(env_id)
    if game is None:
        return _OTHERS.get(env_id)
    key = _as_key(game["named"] or game["ale"] or game["old"])
    of_game = {_as_key(name): scores for name, scores in _ATARI.items()}.get(key)
    return None if of_game is None else Reference(*of_game, _ATARI_SOURCE)


_ATARI_NAME = re.compile(r"atari_(?P<named>\w+)|(?:ale_py:)?ALE/(?P<ale>\w+)-v5|(?P<old>\w+)NoFrameskip-v4")


def _as_key(game: str) -> str:
    return game.replace("_", "").lower()


_ATARI_SOURCE = (
    "random actions and a human tester, with up to 30 no-ops and 30 minutes of play: Wang et al. 2016 (Dueling network "
    "architectures, table 2), as DQN Zoo and Badia et al. 2020 (Agent57) have them"
)
_ATARI = {
    "alien": (227.8, 7127.7),
    "amidar": (5.8, 1719.5),
    "assault": (222.4, 742.0),
    "asterix": (210.0, 8503.3),
    "asteroids": (719.1, 47388.7),
    "atlantis": (12850.0, 29028.1),
    "bank_heist": (14.2, 753.1),
    "battle_zone": (2360.0, 37187.5),
    "beam_rider": (363.9, 16926.5),
    "berzerk": (123.7, 2630.4),
    "bowling": (23.1, 160.7),
    "boxing": (0.1, 12.1),
    "breakout": (1.7, 30.5),
    "centipede": (2090.9, 12017.0),
    "chopper_command": (811.0, 7387.8),
    "crazy_climber": (10780.5, 35829.4),
    "defender": (2874.5, 18688.9),
    "demon_attack": (152.1, 1971.0),
    "double_dunk": (-18.6, -16.4),
    "enduro": (0.0, 860.5),
    "fishing_derby": (-91.7, -38.7),
    "freeway": (0.0, 29.6),
    "frostbite": (65.2, 4334.7),
    "gopher": (257.6, 2412.5),
    "gravitar": (173.0, 3351.4),
    "hero": (1027.0, 30826.4),
    "ice_hockey": (-11.2, 0.9),
    "jamesbond": (29.0, 302.8),
    "kangaroo": (52.0, 3035.0),
    "krull": (1598.0, 2665.5),
    "kung_fu_master": (258.5, 22736.3),
    "montezuma_revenge": (0.0, 4753.3),
    "ms_pacman": (307.3, 6951.6),
    "name_this_game": (2292.3, 8049.0),
    "phoenix": (761.4, 7242.6),
    "pitfall": (-229.4, 6463.7),
    "pong": (-20.7, 14.6),
    "private_eye": (24.9, 69571.3),
    "qbert": (163.9, 13455.0),
    "riverraid": (1338.5, 17118.0),
    "road_runner": (11.5, 7845.0),
    "robotank": (2.2, 11.9),
    "seaquest": (68.4, 42054.7),
    "skiing": (-17098.1, -4336.9),
    "solaris": (1236.3, 12326.7),
    "space_invaders": (148.0, 1668.7),
    "star_gunner": (664.0, 10250.0),
    "surround": (-10.0, 6.5),
    "tennis": (-23.8, -8.3),
    "time_pilot": (3568.0, 5229.2),
    "tutankham": (11.4, 167.6),
    "up_n_down": (533.4, 11693.2),
    "venture": (0.0, 1187.5),
    "video_pinball": (16256.9, 17667.9),
    "wizard_of_wor": (563.5, 4756.5),
    "yars_revenge": (3092.9, 54576.9),
    "zaxxon": (32.5, 9173.3),
}

_LEARNED = "this project: random actions, and the score that counts as learned in scripts/learning/tasks.yaml"
_MOST = "this project: random actions in 60 episodes, and the most that the rewards of the scenario's .cfg file come to"
_OTHERS = {
    "doom_basic": Reference(-165.0, 78.0, _LEARNED),
    "doom_defend_the_center": Reference(0.5, 6.0, _LEARNED),
    "doom_health_gathering": Reference(335.0, 2000.0, _LEARNED),
    "doom_health_gathering_supreme": Reference(295.0, 2100.0, _MOST),
    "doom_my_way_home": Reference(-0.13, 1.0, _MOST),
    "doom_predict_position": Reference(0.10, 1.0, _MOST),
}
