"""Population-based training: from the objectives of all policies to a decision over each.

As in section 4.3 of Petrenko et al. 2020 (Sample Factory), after Jaderberg et al. 2017 (population-based training of
neural networks) and 2019 (For The Win). A generation ranks the policies by their true objective. The best stay as they
are, and the hyperparameters of all others are mutated. Policies that are far below the best receive the weights and
hyperparameters of one of the best. Pure functions: the parent calls `evolve` and carries out its decisions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from numpy.random import Generator

from sf.config.flags.population import PopulationConfig

SHAPING = "shaping/"  # prefix of the weights of shaped rewards among the hyperparameters


@dataclass(frozen=True)
class Range:
    """The bounds of mutations: the smallest and the greatest absolute value, other than 0."""

    low: float
    high: float
    of_complement: bool = False  # the bounds are those of 1 - x, so that the horizon 1 / (1 - x) is scaled


RANGES = {
    "learning_rate": Range(1e-6, 1e-2),
    "exploration_loss_coeff": Range(1e-5, 0.1),
    "ppo_clip_ratio": Range(0.01, 0.5),
    "value_loss_coeff": Range(0.05, 5.0),
    "gamma": Range(1e-4, 0.1, of_complement=True),  # horizons of 10 to 10,000 steps
    SHAPING: Range(1e-6, 100.0),  # every weight of a shaped reward
}


@dataclass(frozen=True)
class Member:
    """One policy of the population."""

    policy_id: int
    objective: float | None  # mean over its latest episodes, the greater the better; None: not enough episodes yet
    hyperparameters: Mapping[str, float]  # names of RANGES, SHAPING and a name, or env. and an option
    interval: tuple[float, float] | None = None  # 95 % confidence interval of the objective; None: it is exact


@dataclass(frozen=True)
class Decision:
    """Says what changes for one policy."""

    policy_id: int
    copies: int | None  # the policy whose weights and optimiser it receives; None: it keeps its own
    hyperparameters: Mapping[str, float]  # all of them, from now on


def evolve(
    members: Sequence[Member],
    rules: PopulationConfig,
    rng: Generator,
    declared: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> list[Decision]:
    """One generation: a decision for each policy that changes. Policies without an objective stay and do not count.
    declared: the lowest and the highest value of hyperparameters that the environment declares, by name.

    Decisions can be carried out in any order: a policy that is copied is one of the best, and so has no decision of its
    own. Ties are ranked at random, so that equal policies are not mutated in the order of their ids.
    """
    known = [member for member in members if member.objective is not None and math.isfinite(member.objective)]
    ranked = sorted((known[idx] for idx in rng.permutation(len(known))), key=_objective, reverse=True)
    share = math.ceil(round(rules.pbt_replace_fraction * len(ranked), 6))  # 0.07 x 100 is 7, not 8
    num_best = max(1, share)
    donors = [member for member in ranked[:num_best] if not _is_far_below(member, ranked[0], rules)]
    decisions = []
    for rank, member in enumerate(ranked[num_best:], start=num_best):
        parent = member
        if rank >= len(ranked) - share and _is_far_below(member, ranked[0], rules):
            parent = donors[rng.integers(len(donors))]
        hyperparameters = _mutated(parent.hyperparameters, rules, rng, declared)
        if parent is not member:
            decisions.append(Decision(member.policy_id, parent.policy_id, hyperparameters))
        elif hyperparameters != member.hyperparameters:
            decisions.append(Decision(member.policy_id, None, hyperparameters))
    return decisions


def _objective(member: Member) -> float:
    assert member.objective is not None
    return member.objective


def _is_far_below(member: Member, best: Member, rules: PopulationConfig) -> bool:
    """best - x > max(absolute gap, relative gap |best|, noise), which needs no division and no positive objective.

    noise: half of the interval of a difference, from the intervals of both (Newcombe 1998, method 10). Jaderberg et al.
    2017 test the difference, too.
    """
    gap = _objective(best) - _objective(member)
    relative_gap = rules.pbt_replace_reward_gap * abs(_objective(best))
    below, _ = best.interval or (_objective(best), math.inf)
    _, above = member.interval or (-math.inf, _objective(member))
    noise = math.hypot(_objective(best) - below, above - _objective(member))
    return gap > max(rules.pbt_replace_reward_gap_absolute, relative_gap, noise)


def _mutated(
    hyperparameters: Mapping[str, float],
    rules: PopulationConfig,
    rng: Generator,
    declared: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    """Each is perturbed with probability `pbt_mutation_rate`."""
    mutated = dict(hyperparameters)
    for name, value in hyperparameters.items():
        may_mutate = name != "gamma" or rules.pbt_optimize_gamma
        if may_mutate and rng.random() < rules.pbt_mutation_rate:
            factor = rng.uniform(rules.pbt_perturb_min, rules.pbt_perturb_max)
            factor = factor if rng.random() < 0.5 else 1.0 / factor
            if name in declared:
                low, high = declared[name]
                mutated[name] = min(max(value * factor, low), high)
            else:
                mutated[name] = _perturbed(name, value, factor)
    return mutated


def _perturbed(name: str, value: float, factor: float) -> float:
    """The value times `factor`, within its range. The sign stays, and so does 0.

    A value outside of its range may only move towards it, by at most `factor`: so no single mutation throws away what
    the user set.
    """
    bounds = RANGES[SHAPING if name.startswith(SHAPING) else name]
    size = 1.0 - value if bounds.of_complement else abs(value)
    scaled = min(max(size * factor, min(bounds.low, size)), max(bounds.high, size))
    return 1.0 - scaled if bounds.of_complement else math.copysign(scaled, value)
