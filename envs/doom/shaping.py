"""Shaped rewards: what the learner gets for changes of game variables.

The weights are hyperparameters of the policy that plays, and no part of the score. Those of the matches are
the ones that Petrenko et al. 2020 trained with, against bots and in self-play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

HELD_WEAPON = "held_weapon"  # the weight of a weapon that is kept in hand: for each step, if it can shoot
HELD_STEPS = 5  # it must have been in hand for this many

# They count for the score of a match. All but the frags go on from episode to episode.
COUNTERS = ("FRAGCOUNT", "DEATHCOUNT", "HITCOUNT", "DAMAGECOUNT")

NUM_SLOTS = 8
SLOT_WORTH = (1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 10.0, 10.0)  # what a weapon and its ammunition are worth, by its slot


@dataclass(frozen=True)
class Term:
    """The reward for a change of one game variable from one step to the next.

    For each unit by which it grew, that is the weight `<weight>_up` times `worth`; for each unit by which it shrank,
    the weight `<weight>_down` times `worth`.
    """

    variable: str
    weight: str
    worth: float = 1.0
    max_change: float = inf  # a greater change counts as this one


@dataclass(frozen=True)
class Shaping:
    """Names what is rewarded, and holds the weights before anybody changes them, by name."""

    terms: tuple[Term, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


_AMMO = tuple(Term(f"AMMO{slot}", "ammo", SLOT_WORTH[slot]) for slot in range(NUM_SLOTS))

NO_SHAPING = Shaping()
MEDIKITS = Shaping(  # 1 each, whatever it heals
    (Term("HEALTH", "medikit", max_change=1.0),),
    {"medikit_up": 1.0, "medikit_down": 0.0},
)
HEALTH_AND_AMMO = Shaping(
    (Term("HEALTH", "health"), *_AMMO),
    {"health_up": 0.005, "health_down": -0.003, "ammo_up": 0.0002, "ammo_down": -0.0001},
)

_MATCH_TERMS = (
    Term("FRAGCOUNT", "frag"),
    Term("DEATHCOUNT", "death"),
    Term("HITCOUNT", "hit", max_change=5.0),
    Term("DAMAGECOUNT", "damage", max_change=200.0),
    Term("HEALTH", "health"),
    Term("ARMOR", "armor"),
    *(Term(f"WEAPON{slot}", "weapon", SLOT_WORTH[slot]) for slot in range(NUM_SLOTS)),
    *_AMMO,
)
_MATCH_WEIGHTS = {
    "frag_up": 1.0,
    "frag_down": -1.5,
    "death_up": -0.75,
    "death_down": 0.75,
    "hit_up": 0.01,
    "hit_down": -0.01,
    "damage_up": 0.003,
    "damage_down": -0.003,
    "health_up": 0.005,
    "health_down": -0.003,
    "armor_up": 0.005,
    "armor_down": -0.001,
    "weapon_up": 0.02,
    "weapon_down": -0.01,
    "ammo_up": 0.0002,
    "ammo_down": -0.0001,
    HELD_WEAPON: 0.0002,
}
AGAINST_BOTS = Shaping(_MATCH_TERMS, _MATCH_WEIGHTS)
SELF_PLAY = Shaping(
    _MATCH_TERMS,
    {
        **_MATCH_WEIGHTS,
        "frag_down": -0.001,
        "death_up": -1.0,
        "death_down": 1.0,
        "hit_up": 0.0,
        "hit_down": 0.0,
        "damage_up": 0.01,
        "damage_down": -0.01,
        "health_up": 0.01,
        "health_down": -0.01,
    },
)


@dataclass(frozen=True)
class Price:
    """A term with its weights in, and the position of its variable among those that are observed."""

    idx: int
    up: float
    down: float
    max_change: float = inf


def change_reward(prices: Sequence[Price], before: Sequence[float], after: Sequence[float]) -> float:
    """Returns the reward for the changes from one observation of the variables to the next."""
    reward = 0.0
    for price in prices:
        change = after[price.idx] - before[price.idx]
        if change > 0:
            reward += price.up * min(change, price.max_change)
        elif change < 0:
            reward += price.down * min(-change, price.max_change)
    return reward


def held_weapon_reward(weight: float, slot: int, ammo: float, held_steps: int) -> float:
    """The reward of a step that ends with a weapon in hand: 0 for less than `HELD_STEPS` and without ammunition.

    slot: of the weapon, -1 for none. held_steps: for how many steps it has been the same one.
    """
    if held_steps < HELD_STEPS or ammo <= 0 or not 0 <= slot < NUM_SLOTS:
        return 0.0
    return weight * SLOT_WORTH[slot]


class Shaper:
    """The shaped reward of one actor, step after step."""

    def __init__(self, shaping: Shaping, variables: Sequence[str]) -> None:
        """variables: the names of what `begin` and `reward` are handed; every term's is among them."""
        self._names = tuple(shaping.weights)
        self._terms = [(variables.index(term.variable), term) for term in shaping.terms]
        self._dead_idx, self._deaths_idx = (
            variables.index(name) if name in variables else None for name in ("DEAD", "DEATHCOUNT")
        )
        if HELD_WEAPON in shaping.weights:
            self._weapon_idx = variables.index("SELECTED_WEAPON")
            self._ammo_idx = variables.index("SELECTED_WEAPON_AMMO")
        self._values: Sequence[float] = ()
        self._held_steps = 0
        self.set_weights([*shaping.weights.values()])

    def set_weights(self, weights: Sequence[float]) -> None:
        """weights: [K], in the order of the weights of the shaping."""
        by_name = dict(zip(self._names, map(float, weights), strict=True))
        self._prices = []
        for idx, term in self._terms:
            up, down = by_name[f"{term.weight}_up"], by_name[f"{term.weight}_down"]
            self._prices.append(Price(idx, up * term.worth, down * term.worth, term.max_change))
        self._prices_of_counters = [
            price for price, (_, term) in zip(self._prices, self._terms, strict=True) if term.variable in COUNTERS
        ]
        self._held_weight = by_name.get(HELD_WEAPON)

    def begin(self, values: Sequence[float]) -> None:
        """The variables at the start of an episode: only changes from here on are rewarded."""
        self._values = values
        self._held_steps = 0

    def reward(self, values: Sequence[float]) -> float:
        """Returns the reward of the step that has led to these values.

        0 for one in which the player came to life again, or what the counters say of it if it has died in it, too.
        """
        before, self._values = self._values, values
        reward = change_reward(self._prices, before, values) if values != before else 0.0
        if self._held_weight is not None:
            slot = int(values[self._weapon_idx])
            self._held_steps = self._held_steps + 1 if slot == int(before[self._weapon_idx]) else 0
            reward += held_weapon_reward(self._held_weight, slot, values[self._ammo_idx], self._held_steps)
        if self._dead_idx is None or values[self._dead_idx]:
            return reward
        if before[self._dead_idx]:
            return 0.0
        if self._deaths_idx is not None and values[self._deaths_idx] > before[self._deaths_idx]:
            return change_reward(self._prices_of_counters, before, values)
        return reward
