"""Training by search: whether it can be, what the learner does then, and how rollout workers search."""

from __future__ import annotations

from dataclasses import replace

from sf import envs
from sf.config import Config
from sf.config.schedules import parse
from sf.envs import EnvSpec, UsageError
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.openspiel.family import SHOWN
from sf.rollout.searching import SearchArgs
from sf.run.plan import Plan
from sf.search.search import SearchSettings
from sf.shared.leaves import Leaves
from sf.shared.rows import FULLY_SEARCHED, SEARCHED

_OF_TARGETS = ("gamma", "gae_lambda")
_NUM_RESIGNING = 2  # players of a game that one of them may resign
_BATCH = 16  # leaves of a group that are on their way at once


def with_search(config: Config) -> Config:
    """Returns the configuration in which the policy learns from searches alone, and values from what they led to."""
    if config.learner.algorithm != "search":
        return config
    return config.replace(
        policy_loss_coeff=0.0,
        exploration_loss_coeff=0.0,
        exploration_loss_coeff_final=None,
        exploration_loss_coeff_extra=0.0,
        with_vtrace=False,
        ppo_clip_value=0.0,
        lr_schedule="constant" if config.learner.lr_schedule == "kl_adaptive" else config.learner.lr_schedule,
    )


def with_search_rows(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with what searches find in the rows. Raises UsageError where nothing can be searched."""
    if config.learner.algorithm != "search":
        return spec
    env = config.run.env
    why = None
    if not env.startswith(OPENSPIEL):
        why = f"env is {env}: a search plays games of OpenSpiel, so name one"
    elif not {*spec.obs_space} <= SHOWN:
        unknown = ", ".join(sorted({*spec.obs_space} - SHOWN))
        why = f"the policy sees {unknown}, which a search cannot show it: leave out what adds that"
    elif config.population.num_policies > 1 or config.players.with_players:
        why = "it plays against itself: leave num_policies, past_share and players out"
    elif config.model.core != "none":
        why = f"core is {config.model.core}: a search evaluates positions one by one, so take none"
    elif config.model.has_central_critic:
        why = "policy workers need the value of a position: leave critic, critic_obs and mixer out"
    elif config.learner.teacher or config.learner.demonstrations:
        why = "the search is the teacher: leave teacher and demonstrations out"
    elif config.environment.share_reward != "none" or config.learner.reward_clip:
        why = "a search knows what the game pays: leave share_reward and reward_clip out"
    elif config.search.buffer_games and any(each.name in _OF_TARGETS for each in parse(config.run.anneal)):
        why = "the targets of a game are computed once: leave gamma and gae_lambda out of anneal, or buffer_games out"
    if why is not None:
        raise UsageError(f"algorithm is search, and {why}")
    group = envs.make_group(env, 1, config.environment, seed=0, first_env_idx=0)
    model = group.forward_model(seed=0)  # type: ignore[attr-defined]  # says why the game cannot be searched
    if config.search.resign and not (model.num_players == _NUM_RESIGNING and model.pays_at_end):
        raise UsageError(
            f"resign is true, and {env} is no game of two players that pays at its end alone: leave it out"
        )
    return replace(spec, optional_fields=(*spec.optional_fields, SEARCHED, FULLY_SEARCHED))


def leaves_per_group(config: Config) -> int:
    """Returns how many leaves a request has at most."""
    return max(_BATCH, config.sampler.num_envs_per_group) if config.learner.algorithm == "search" else 0


def search_args(plan: Plan, leaves: Leaves) -> SearchArgs:
    search, learner = plan.config.search, plan.config.learner
    settings = SearchSettings(
        search.simulations, search.search_root, discount=learner.gamma, batch=leaves_per_group(plan.config)
    )
    return SearchArgs(
        settings,
        leaves,
        reward_scale=learner.reward_scale,
        temperature_moves=search.search_temperature_moves,
        noise=search.search_noise,
        full_share=search.search_full_share,
        resigns=search.resign,
    )
