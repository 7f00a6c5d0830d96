"""Whom of the pool to meet: probabilities from what the matches so far say. Pure functions."""

from __future__ import annotations

import numpy as np

from sf.players.config import OpponentChoice

_STEP_OF_QUALITY = 0.01  # eta in OpenAI Five


def probabilities(choice: OpponentChoice, quality: np.ndarray, wins: np.ndarray, matches: np.ndarray) -> np.ndarray:
    """[K] of the K players of a pool, which add up to 1.

    quality: [K], see `quality_after_win`. wins, matches: [K], those of the learning policy against each player of late.

    quality: softmax(quality), of OpenAI et al. 2019, "Dota 2 with Large Scale Deep Reinforcement Learning", appendix on
    opponent sampling. pfsp, pfsp_even: f(x) over its sum, where x is the win rate, f_hard(x) = (1 - x)^2 and
    f_var(x) = x (1 - x), of Vinyals et al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement
    learning", methods. x is (wins + 1) / (matches + 2), so that no player is given up for good.
    """
    assert len(quality) == len(wins) == len(matches) > 0
    win_rate = (wins + 1) / (matches + 2)
    weights = {
        "quality": np.exp(quality - quality.max()),
        "pfsp": (1 - win_rate) ** 2,
        "pfsp_even": win_rate * (1 - win_rate),
        "uniform": np.ones(len(quality)),
    }[choice]
    return weights / weights.sum()


def quality_after_win(quality: float, probability: float, num_players: int) -> float:
    """Of a player that the learning policy has beaten, of N in the pool, met with this probability.

    q <- q - eta / (N p), so a player that is met often loses no more of its quality than others (OpenAI et al. 2019).
    Draws and defeats do not change it.
    """
    return quality - _STEP_OF_QUALITY / (num_players * probability)
