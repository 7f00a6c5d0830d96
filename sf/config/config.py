"""The configuration: the parts of `sf.config.flags`, put together, and the rules across them.

Each part is a frozen dataclass; every field is a command-line flag of the same name. `sf.envs.field_types` checks the
types of the fields, whichever way a value came, and each part its own rules. Derived numbers are properties. A broken
rule is a ValueError that begins with the flag and its value, and says what to change.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from sf.config.flags.evaluation import EvaluationConfig
from sf.config.flags.learner import LearnerConfig
from sf.config.flags.model import ModelConfig
from sf.config.flags.players import PlayersConfig
from sf.config.flags.population import PopulationConfig
from sf.config.flags.run import RanksConfig, RunConfig, SupervisionConfig
from sf.config.flags.sampler import SamplerConfig
from sf.config.flags.search import SearchConfig
from sf.config.flags.watch import WatchConfig
from sf.config.schedules import ENV, final_options, parse
from sf.envs.errors import UsageError
from sf.envs.field_types import check_fields, checked, require
from sf.envs.options import EnvOptions
from sf.envs.registry import as_evaluated

_LARGEST = {int: 2**63 - 1, float: 3.4e38}  # of 64 bits, and of float32


@dataclass(frozen=True)
class Config:
    """Everything a run depends on."""

    run: RunConfig = field(default_factory=RunConfig)
    environment: EnvOptions = field(default_factory=EnvOptions)
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    population: PopulationConfig = field(default_factory=PopulationConfig)
    players: PlayersConfig = field(default_factory=PlayersConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    ranks: RanksConfig = field(default_factory=RanksConfig)
    supervision: SupervisionConfig = field(default_factory=SupervisionConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        self._require_that_numbers_fit()
        batch, rollout = self.learner.batch_size, self.sampler.rollout
        if batch != "auto" and rollout != "auto":
            require(
                batch % rollout == 0,
                f"batch_size is {batch}: it must be a multiple of rollout ({rollout}), for example "
                f"{max(1, round(batch / rollout)) * rollout}",
            )
        steps = self.learner.steps_per_iteration
        require(
            not self.sampler.async_rl or self.sampler.max_policy_lag >= steps,
            f"max_policy_lag is {self.sampler.max_policy_lag}: the policy is {steps} versions on after each iteration "
            "(num_batches_per_epoch x num_epochs), so all asynchronous data would be too old; raise it",
        )
        require(
            self.learner.lr_schedule not in ("linear", "cosine") or self.run.ends_by_steps or self.run.ends_by_seconds,
            f"lr_schedule is {self.learner.lr_schedule}: it needs train_for_env_steps, train_for_env_frames or "
            "train_for_seconds to know where the end is",
        )
        require(
            not (self.learner.lr_schedule == "kl_adaptive" and steps == 1 and not self.sampler.async_rl),
            "lr_schedule is kl_adaptive: the only step of a synchronous iteration sees no KL divergence, so raise "
            "num_epochs or num_batches_per_epoch, or take constant, linear or cosine",
        )
        require(
            self.population.num_policies == 1 or self.sampler.async_rl,
            f"num_policies is {self.population.num_policies}: synchronous training supports one policy, so leave "
            "async_rl true",
        )
        self._require_that_one_process_can()
        require(
            not self.model.core_skip or self.model.core != "none",
            "core_skip is true, but core is none: name a core, such as gru, or leave core_skip out",
        )
        require(
            self.players.exploiters < self.population.num_policies,
            f"exploiters is {self.players.exploiters}, and num_policies {self.population.num_policies}: raise that, so "
            "that there is a policy that they exploit",
        )
        require(
            not self.players.exploiters or not self.population.with_pbt,
            f"exploiters is {self.players.exploiters}: with_pbt would replace them by copies of others, so leave one "
            "of both out",
        )
        require(
            not self.players.with_players or self.sampler.async_rl,
            f"past_share is {self.players.past_share}: synchronous training is against the present alone, so leave "
            "async_rl true",
        )
        self._require_that_schedules_can_be()
        require(
            not (self.population.with_pbt and self.learner.lr_schedule == "kl_adaptive"),
            "lr_schedule is kl_adaptive: with_pbt changes the learning rate itself, so take constant, linear or cosine",
        )

    @property
    def rollout(self) -> int:
        """Steps of a trajectory (T), once `with_sizes` has chosen it."""
        assert self.sampler.rollout != "auto"
        return self.sampler.rollout

    @property
    def slots_per_batch(self) -> int:
        """Trajectories of one minibatch (B), once `with_sizes` has chosen the sizes."""
        assert self.learner.batch_size != "auto"
        return self.learner.batch_size // self.rollout

    @property
    def slots_per_iteration(self) -> int:
        """Trajectories that the learner takes at once."""
        return self.slots_per_batch * self.learner.num_batches_per_epoch

    @property
    def demonstrated_per_iteration(self) -> int:
        """Demonstrated trajectories beside them: as many in each minibatch."""
        learner = self.learner
        is_beside = learner.demo_coeff > 0 or any(each.name == "demo_coeff" for each in parse(self.run.anneal))
        if not learner.demonstrations or not is_beside:
            return 0
        return max(1, round(learner.demo_share * self.slots_per_batch)) * learner.num_batches_per_epoch

    @property
    def trajectories_per_iteration(self) -> int:
        """Trajectories in the batch of an iteration."""
        return self.slots_per_iteration + self.demonstrated_per_iteration

    def _require_that_one_process_can(self) -> None:
        """Refuses what needs more processes where `serial` allows one."""
        every_env_steps = {
            name: (getattr(self.evaluation, name), None)
            for name in ("eval_every_env_steps", "video_every_env_steps", "exploitability_every_env_steps")
        }
        asked = {
            "num_policies": (self.population.num_policies, 1),
            "past_share": (self.players.past_share, 0),
            "gradient_workers": (self.learner.gradient_workers, 0),
            **every_env_steps,
        }
        for name, (value, allowed) in asked.items():
            require(
                not self.run.serial or not value or value == allowed,
                f"{name} is {value}: --serial true runs everything in one process, so set --{name} {allowed}",
            )

    def _require_that_schedules_can_be(self) -> None:
        """Refuses schedules of flags that have none, of values that cannot be, or beside another of the same flag."""
        learner = self.learner
        parts: tuple[Any, ...] = (learner, self.players, self.environment)
        owners = {name: part for part in parts for name in part.ANNEALED}
        other_schedules: dict[str, dict[str, tuple[Any, Any]]] = {  # flags with their values, and those without one
            "learning_rate": {"lr_schedule": (learner.lr_schedule, "constant")},
            "exploration_loss_coeff": {
                "exploration_loss_coeff_final": (learner.exploration_loss_coeff_final, None),
                "exploration_loss_coeff_extra": (learner.exploration_loss_coeff_extra, 0.0),
            },
        }
        for schedule in parse(self.run.anneal):
            name = schedule.name
            if name.startswith(ENV):
                continue  # the environment says what it can be
            known = ", ".join(owners)
            require(name in owners, f"anneal names {name}: it may be {ENV}OPTION of the environment, or one of {known}")
            for value in (schedule.start, schedule.end):
                dataclasses.replace(owners[name], **{name: value})  # says what is wrong with it
            for flag, (given, none) in other_schedules.get(name, {}).items():
                require(given == none, f"anneal names {name}, and {flag} is {given}: leave one of both out ({none})")
            require(
                name != "past_share" or self.players.with_players,
                "anneal names past_share, and past_share is 0: set --past_share, too, so that the run has a pool",
            )
            require(
                name != "learning_rate" or not self.population.pbt_initial_lr_decades,
                "anneal names learning_rate, and pbt_initial_lr_decades spreads it: leave one of both out",
            )

    @property
    def evaluated_environment(self) -> EnvOptions:
        """The options of the environment in evaluations: without aids of training, at the last values of `anneal`."""
        options = as_evaluated(self.run.env, self.environment)
        final = final_options(parse(self.run.anneal))
        if not final:
            return options
        return dataclasses.replace(options, env_options=json.dumps({**options.option_ranges, **final}))

    def _require_that_numbers_fit(self) -> None:
        """Counters, tensors and queues hold no larger ones."""
        for part in dataclasses.fields(self):
            for name, value in vars(getattr(self, part.name)).items():
                most = _LARGEST.get(type(value))
                if most is not None and abs(value) > most:
                    bound = f"most {most}" if value > 0 else f"least {-most}"
                    raise UsageError(f"{name} is {value}: it must be at {bound}")

    def flat(self) -> dict[str, Any]:
        """Every field by its flag name."""
        out: dict[str, Any] = {}
        for part in dataclasses.fields(self):
            out.update(dataclasses.asdict(getattr(self, part.name)))
        return out

    def replace(self, **flags: Any) -> Config:
        """Returns a copy with some flags changed. Raises ValueError for an unknown name, or a value that cannot be."""
        flags = checked(Config, flags)
        parts: dict[str, Any] = {}
        for part in dataclasses.fields(self):
            component = getattr(self, part.name)
            own = {f.name: flags[f.name] for f in dataclasses.fields(component) if f.name in flags}
            parts[part.name] = dataclasses.replace(component, **own) if own else component
        return Config(**parts)
