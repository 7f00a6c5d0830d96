"""Which loader a learner has."""

from __future__ import annotations

from sf.learner.args import LearnerArgs
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import AsyncLoader, Loader, SlotCopier, SyncLoader
from sf.learner.batches.yielding_loader import YieldingLoader
from sf.learner.demonstrations.sampler import DemonstrationSampler
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
