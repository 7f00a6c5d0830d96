"""Which loader a learner has."""

from __future__ import annotations

from collections.abc import Callable

from sf.learner.args import LearnerArgs
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import AsyncLoader, Loader, SlotCopier, SyncLoader
from sf.learner.batches.yielding_loader import YieldingLoader
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.learner.games.buffer import GameBuffer
from sf.learner.games.joining import GameJoiner
from sf.learner.games.loaders import AsyncGamesLoader, SyncGamesLoader
from sf.learner.games.supply import GameSupply, SupplyRules
from sf.shared.policy_view import PolicyView
from sf.shared.weights import SharedWeights


def make_loader(
    args: LearnerArgs, weights: SharedWeights, demonstrations: DemonstrationSampler | None = None
) -> Loader:
    """The loader of an asynchronous or of a synchronous run."""
    device = args.weights.device
    copier = SlotCopier(args.slots, args.states, args.spec)
    layout = PolicyView(args.spec).layout(args.slots.arrays)

    def buffer() -> BatchBuffer:
        config = args.config
        beside = demonstrations, config.demonstrated_per_iteration
        return BatchBuffer(layout, config.slots_per_iteration, args.states.size, device, *beside)

    if not args.config.sampler.async_rl:
        return SyncLoader(args.slots, copier, buffer(), weights, args.num_actors)
    may_block_others = args.config.population.num_policies > 1 and not args.place.is_alone
    kind = YieldingLoader if may_block_others else AsyncLoader
    return kind(args.slots, copier, (buffer(), buffer()), device, args.stop)


def make_games_loader(args: LearnerArgs, games: GameBuffer, version: Callable[[], int]) -> Loader:
    """The loader of a run that trains on a buffer of games. version: of the policy, at present."""
    config, slots = args.config, args.slots
    learner, search = config.learner, config.search
    lambda_ = 1.0 if search.value_target == "outcome" else learner.gae_lambda
    joiner = GameJoiner(slots.arrays, gamma=learner.gamma, lambda_=lambda_, reward_scale=learner.reward_scale)
    seed = config.run.seed, args.policy_id
    rules = SupplyRules(search.buffer_min_games, args.spec.num_agents, learner.num_epochs, seed)
    supply = GameSupply(slots, joiner, games, rules, version)
    device = args.weights.device
    buffer = BatchBuffer(slots.arrays, config.slots_per_iteration, args.states.size, device)
    if not config.sampler.async_rl:
        return SyncGamesLoader(slots, supply, buffer, args.num_actors)
    return AsyncGamesLoader(slots, supply, buffer, args.num_actors, args.stop)
