"""Flags of populations: how many policies train at once, and how they evolve."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields


@dataclass(frozen=True)
class PopulationConfig:
    """Several policies in one run, and population-based training of them. See sf.population.evolution."""

    num_policies: int = 1
    """Policies that train at once, each with a learner and policy workers of its own."""

    pbt_mix_policies_in_one_env: bool = True
    """Each agent of a match draws its policy by itself, so policies meet. false: all agents of an environment play the
    same policy. Either is drawn anew for each episode."""

    pbt_rollouts_per_draw: int = 4
    """A policy that was drawn plays for at least this many rollouts, over several episodes where they are shorter: a
    change in the middle of a rollout costs the rest of it, at 4 an eighth of the data at most. 0: every
    episode draws."""

    with_pbt: bool = False
    """Population-based training: the policies are ranked now and then, the worse ones' hyperparameters are mutated, and
    the worst take over the weights of the best."""

    pbt_period_env_steps: int = 5_000_000
    """Env steps (decisions, not frames) that each policy trains on from one generation to the next."""

    pbt_start_mutation: int = 20_000_000
    """Env steps that each policy trains on before the first generation, for the policies to become different."""

    pbt_replace_fraction: float = 0.3
    """This share of the policies, rounded up, is the best: they stay as they are, all others are mutated. The same
    share is the worst: those of them that are far below the best receive weights and hyperparameters."""

    pbt_mutation_rate: float = 0.15
    """Probability of each hyperparameter to be perturbed where a policy is mutated."""

    pbt_replace_reward_gap: float = 0.1
    """A policy is far below the best if its objective is lower by more than this share of the best's. 0.5 where the
    objective is a win rate: then whoever wins less than half as often as the best is replaced."""

    pbt_replace_reward_gap_absolute: float = 1e-6
    """And lower by more than this, in units of the objective."""

    pbt_initial_lr_decades: float = 0.0
    """The policies begin with learning rates that are spread evenly, by their logarithm, over this many powers of ten
    around learning_rate."""

    pbt_optimize_gamma: bool = False
    """Mutate the discount, too."""

    pbt_perturb_min: float = 1.1
    """A hyperparameter is perturbed by a factor of at least this, up or down."""

    pbt_perturb_max: float = 1.2
    """A hyperparameter is perturbed by a factor of at most this, up or down."""

    pbt_target_objective: str = "true_objective"
    """The statistic of finished episodes by whose mean the policies are ranked; the greater the better."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.num_policies < 1:
            raise ValueError(f"num_policies is {self.num_policies}: at least 1")
        if self.pbt_rollouts_per_draw < 0:
            raise ValueError(f"pbt_rollouts_per_draw is {self.pbt_rollouts_per_draw}: 0 or greater")
        if self.with_pbt and self.num_policies == 1:
            raise ValueError("with_pbt is true, but num_policies is 1: a population evolves from 2 policies on")
        if self.pbt_period_env_steps < 1:
            raise ValueError(f"pbt_period_env_steps is {self.pbt_period_env_steps}: at least 1")
        for name in (
            "pbt_start_mutation",
            "pbt_replace_reward_gap",
            "pbt_replace_reward_gap_absolute",
            "pbt_initial_lr_decades",
        ):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name)}: it must be 0 or greater, and finite")
        if not 0.0 <= self.pbt_replace_fraction <= 0.5:
            raise ValueError(
                f"pbt_replace_fraction is {self.pbt_replace_fraction}: from 0 to 0.5, since no policy can be among "
                "the best and among the worst"
            )
        if not 0.0 <= self.pbt_mutation_rate <= 1.0:
            raise ValueError(f"pbt_mutation_rate is {self.pbt_mutation_rate}: a probability from 0 to 1")
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
