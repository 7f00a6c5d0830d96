"""Flags of populations: how many policies train at once, and how they evolve."""

from __future__ import annotations

from dataclasses import dataclass, field

from sf.config.flags.ranges import require_range
from sf.envs.field_types import AS_JSON, check_fields

_MOST_DECADES = 20


@dataclass(frozen=True)
class PopulationConfig:
    """Several policies in one run, and population-based training (PBT): docs/populations.md."""

    num_policies: int = 1
    """Policies to train at once, each with its own learner and policy workers."""

    pbt_mix_policies_in_one_env: bool = True
    """Draw a policy for each agent of a match, so that different policies meet. false: draw one for all agents of an
    environment. Both draw again for each episode."""

    pbt_rollouts_per_draw: int = 4
    """A drawn policy plays for at least this many rollouts, over several episodes if they are shorter. A change of
    policy wastes the rest of the rollout: with 4, at most an eighth of the data. 0: draw for every episode."""

    policy_of: str | None = field(default=None, metadata=AS_JSON)
    """Roles: which policies play which agents, as a JSON object of patterns of agent names with a policy or a list of
    them, for example '{"adversary_*": 0, "agent_*": [1, 2]}'. Of a list, one is drawn for all agents of the role, in
    the place of pbt_mix_policies_in_one_env, and its policies evolve among themselves. Default: every policy plays
    every agent."""

    with_pbt: bool = False
    """Population-based training: rank the policies periodically, mutate the hyperparameters of all but the best, and
    replace the worst by copies of the best."""

    pbt_period_env_steps: int = 5_000_000
    """Env steps (decisions, not frames) that each policy trains on between two generations."""

    pbt_start_mutation: int = 20_000_000
    """Env steps that each policy trains on before the first generation, so that the policies become different."""

    pbt_replace_fraction: float = 0.3
    """Share of the policies, rounded up, that count as the best, and the share that count as the worst. The best
    stay as they are, all others are mutated. A worst policy far below the best receives weights and hyperparameters
    of one of the best."""

    pbt_mutation_rate: float = 0.15
    """Probability that a mutation changes a given hyperparameter."""

    pbt_replace_reward_gap: float = 0.1
    """A policy is far below the best if its objective is lower by more than this share of the best one. If the
    objective is a win rate, use 0.5: this replaces a policy that wins less than half as often as the best. A difference
    that may be chance never counts, whatever this is."""

    pbt_replace_reward_gap_absolute: float = 1e-6
    """The objective must also be lower by more than this, in its own units."""

    pbt_initial_lr_decades: float = 0.0
    """Spread the initial learning rates of the policies evenly, on a log scale, over this many powers of ten around
    learning_rate."""

    pbt_optimize_gamma: bool = False
    """Also mutate gamma."""

    pbt_optimize_options: tuple[str, ...] = ()
    """Also mutate these options of the environment, which --env_options gives their first values, in the ranges that
    the environment declares. Let pbt_target_objective be a statistic that they do not make easier."""

    pbt_perturb_min: float = 1.1
    """Smallest factor by which a mutation multiplies or divides a hyperparameter."""

    pbt_perturb_max: float = 1.2
    """Largest factor by which a mutation multiplies or divides a hyperparameter."""

    pbt_target_objective: str = "true_objective"
    """Episode statistic to rank policies by, as a mean over episodes; higher is better. The default is the win rate in
    matches whose returns add up to zero and that report no true_objective, else the return. Any other name that is not
    reported is the return."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "num_policies", "pbt_period_env_steps", least=1)
        require_range(self, "pbt_rollouts_per_draw", "pbt_start_mutation", least=0)
        require_range(self, "pbt_replace_reward_gap", "pbt_replace_reward_gap_absolute", least=0)
        require_range(self, "pbt_initial_lr_decades", least=0, most=_MOST_DECADES)
        require_range(self, "pbt_replace_fraction", least=0, most=0.5)  # no policy is among the best and the worst
        require_range(self, "pbt_mutation_rate", least=0, most=1)
        if self.with_pbt and self.num_policies == 1:
            raise ValueError("with_pbt is true, but num_policies is 1: a population evolves from 2 policies on")
        if not 1.0 <= self.pbt_perturb_min <= self.pbt_perturb_max < float("inf"):
            raise ValueError(
                f"pbt_perturb_min is {self.pbt_perturb_min}, pbt_perturb_max {self.pbt_perturb_max}: factors of at "
                "least 1, the first not above the second"
            )
        if not self.pbt_target_objective:
            raise ValueError("pbt_target_objective is empty: name a statistic of episodes, for example true_objective")

    def generation_at(self, env_steps: int) -> int:
        """How many generations are due when each policy has trained on this many env steps.

        It depends on nothing else, so a resumed run goes on at the right place, and the number together with the seed
        of the run can seed the random numbers of that generation.
        """
        if not self.with_pbt or env_steps < self.pbt_start_mutation:
            return 0
        return 1 + (env_steps - self.pbt_start_mutation) // self.pbt_period_env_steps
