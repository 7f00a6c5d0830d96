"""Which players of the pool to meet: their probabilities by the results so far, and the weights of seats. Pure."""

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


def quality_after_win(quality: float, matches: float, num_players: int) -> float:
    """Returns the quality of a player that the learning policy has beaten, of N in the pool.

    q <- q - eta / (N p), so a player that is met often loses no more of its quality than others (OpenAI et al. 2019).
    Draws and defeats do not change it. matches: 1 / p as it is found, the matches of the policy for each one against
    this player. A player in a seat has many matches in a row, and in the meantime p changes with the quality.
    """
    return quality - _STEP_OF_QUALITY * matches / num_players


def seat_weights(probability: np.ndarray, num_seats: int) -> np.ndarray:
    """Returns how likely each of K players is beside the others that have a seat, [K].

    probability: [K], adds up to 1, or is 0 where no player is left. A player for which one of S seats is too few
    (S p >= 1, of what is left) has its own probability, and is to have a seat always. The others share the remaining
    seats, and all weigh as much in them: tau with sum(min(1, p / tau)) = S. Where each of them is in a seat for p / tau
    of the time, it is met with probability p (sampling with unequal probabilities, Horvitz and Thompson 1952).
    """
    rest = np.cumsum(np.sort(probability))[::-1][:num_seats]  # [min(K, S)] without the 0, 1, 2, ... likeliest
    tau = (rest / (num_seats - np.arange(len(rest)))).min()
    return np.maximum(probability, max(tau, np.finfo(np.float64).tiny))  # of a single seat, never 0 / 0
