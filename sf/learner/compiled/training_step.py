"""One optimiser step as a function of all that it reads, for PyTorch's exporter to follow.

It is the step of `OptimizerStep` itself on a minibatch of single steps: the network and the loss are the same code, and
only what the optimiser and the clipping of gradients do stands here once more, since theirs cannot be followed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from sf.config import LearnerConfig
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Minibatch, Moments, Targets, steps_of
from sf.learner.loss.minibatch_loss import loss_settings, minibatch_loss
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.terms.table import metrics_of, terms_of
from sf.learner.optimizer.optimizer import AdamState, adam_update
from sf.model.distributions import ActionDistribution
from sf.model.layers import Compilable
from sf.model.task_returns import update_value_norm
from sf.shared.rows import has_next

_NETWORK = "network."  # before the names of its weights
MIN_STEPS = 2  # in a minibatch: PyTorch takes sizes of 0 and 1 to be special
_UNUSUAL = 1009  # as a size
_FIELD, _TARGET, _MOMENT = "field/", "target/", "moment/"  # before the names of an iteration's tensors


class StepInputs(NamedTuple):
    """What a step reads. Weights and moments are written in place.

    weights: parameters and buffers of the network, by name. moments: of the parameters that are trained. whole: of the
    iteration, see `tensors_of`. at: the steps to train on, [M, A], see `steps_of`. rates: float64, the learning rate
    and the flat `LossNumbers`, which may change from one iteration to the next.
    """

    weights: dict[str, Tensor]
    moments: dict[str, AdamState]
    whole: dict[str, Tensor]
    at: Tensor
    rates: Tensor


class Fixed(NamedTuple):
    """What is a constant of the program."""

    config: LearnerConfig
    action_spec: ActionSpec
    bfloat16: bool

    def words(self) -> str:
        """The same for two of the same program."""
        config = self.config
        settings = loss_settings(config, LossNumbers.of(config))._replace(clip_ratio=0.0)  # which is an input
        names = [term.name for term in terms_of(config)]
        adam = config.adam_beta1, config.adam_beta2, config.adam_eps, config.max_grad_norm, config.weight_decay
        return repr((settings, names, adam, self.action_spec, self.bfloat16))


def results_of(config: LearnerConfig) -> list[str]:
    """Returns the names of what a step gives, in their order."""
    return [*metrics_of(config), "loss", "grad_norm", "is_skipped"]


def tensors_of(whole: Minibatch) -> dict[str, Tensor]:
    """Those of an iteration that steps are taken from, by names: as one trajectory [T x B, 1], and observations as one
    of [(T+1) x B, 1], so that a program holds for any number of trajectories of any length.
    """
    assert whole.targets is not None
    named = {_FIELD + name: value for name, value in whole.batch.named().items()}
    named |= {"mask": whole.mask, "proximal_log_prob": whole.proximal_log_prob}
    named |= {_TARGET + key: value for key, value in whole.targets._asdict().items()}
    named = {name: tensor.flatten(0, 1)[:, None] for name, tensor in named.items()}
    named["state"] = whole.batch.state[:1]  # of no size: the network has no memory
    if whole.advantage_moments is not None:
        named |= {_MOMENT + key: value for key, value in whole.advantage_moments._asdict().items()}
    return named


def _whole(named: Mapping[str, Tensor]) -> Minibatch:
    """An iteration of one trajectory, of which these are the `tensors_of`. Its observations go on beyond its steps."""

    def below(prefix: str) -> dict[str, Tensor]:
        return {key.removeprefix(prefix): value for key, value in named.items() if key.startswith(prefix)}

    moments = below(_MOMENT)
    return Minibatch(
        Batch.from_named(below(_FIELD), named["state"]),
        named["mask"],
        named["proximal_log_prob"],
        Targets(**below(_TARGET)),
        Moments(**moments) if moments else None,
    )


def followed(network: Any, fixed: Fixed, example: StepInputs) -> torch.export.ExportedProgram:
    """The program before it is compiled: leaves of `StepInputs` in, `results_of` [R] float32 out.

    It holds for inputs with the shapes of the example, but for any number M of steps, of `MIN_STEPS` at least, of an
    iteration of any size. Raises whatever PyTorch does.
    """
    for part in network.modules():
        if isinstance(part, Compilable):
            part.with_loops = False  # nobody can follow them
    example, dims = _with_sizes_of_their_own(example)
    step = _Step(network, fixed)
    # On tensors without content, so a network that decides by what it computes cannot be followed.
    operations = make_fx(step, tracing_mode="symbolic", _allow_non_fake_inputs=True)(_without_content(example, dims))
    leaves, structure = pytree.tree_flatten(example)
    shapes = tuple({0: dims[leaf]} if leaf in dims else None for leaf in leaves)
    with torch.no_grad():
        inputs = tuple(leaf.detach() for leaf in leaves)
        return torch.export.export(_OfLeaves(operations, structure), inputs, dynamic_shapes=(shapes,))


def _with_sizes_of_their_own(example: StepInputs) -> tuple[StepInputs, dict[Tensor, Any]]:
    """The example with first axes that are left open, and their names by tensor.

    Their sizes are those of no other axis: where two are equal, PyTorch takes it that they have to be.
    """
    sizes = {size for tensor in pytree.tree_leaves(example) for size in tensor.shape}
    num_taken, num_steps, num_rows = itertools.islice((n for n in itertools.count(_UNUSUAL) if n not in sizes), 3)
    taken, steps = (torch.export.Dim(name, min=MIN_STEPS) for name in ("taken", "steps"))
    rows = torch.export.Dim("rows", min=MIN_STEPS + 1)  # there is a last observation
    dims: dict[Tensor, Any] = {}

    def opened(name: str, tensor: Tensor) -> Tensor:
        if name == "state" or name.startswith(_MOMENT):
            return tensor
        has_last = name.startswith(_FIELD) and has_next(name.removeprefix(_FIELD))
        new = tensor.new_zeros((num_rows if has_last else num_steps, *tensor.shape[1:]))
        dims[new] = rows if has_last else steps
        return new

    whole = {name: opened(name, tensor) for name, tensor in example.whole.items()}
    num_together = example.at.shape[1]
    at = torch.arange(num_taken * num_together).view(-1, num_together)
    dims[at] = taken
    return example._replace(whole=whole, at=at), dims


def _without_content(example: StepInputs, dims: Mapping[Tensor, Any]) -> StepInputs:
    """Tensors of the same shapes, but for the axes that are left open. Each of these costs seconds."""
    mode = FakeTensorMode(shape_env=ShapeEnv(assume_static_by_default=True), allow_non_fake_inputs=True)

    def fake(tensor: Tensor) -> Tensor:
        sizes = [DimDynamic.STATIC] * tensor.dim()
        if tensor in dims:
            sizes[0] = DimDynamic.DYNAMIC
        return mode.from_tensor(tensor, symbolic_context=StatelessSymbolicContext(sizes))

    return pytree.tree_map(fake, example)


class _OfLeaves(nn.Module):
    def __init__(self, operations: torch.fx.GraphModule, structure: pytree.TreeSpec) -> None:
        super().__init__()
        self._operations, self._structure = operations, structure

    def forward(self, *leaves: Tensor) -> Tensor:
        return cast("Tensor", self._operations(pytree.tree_unflatten(list(leaves), self._structure)))


class _Step:
    def __init__(self, network: Any, fixed: Fixed) -> None:
        self._fixed = fixed
        self._loss = _Loss(network, fixed)
        self._value_norm = _ValueNorm(network)

    def __call__(self, inputs: StepInputs) -> Tensor:
        whole = _whole(inputs.whole)
        assert whole.targets is not None
        minibatch = steps_of(whole, whole.targets, inputs.at)
        learning_rate, numbers = inputs.rates[0], LossNumbers.from_flat(inputs.rates[1:])
        trained = {name: inputs.weights[name].detach().requires_grad_() for name in inputs.moments}
        result, target = self._loss.with_weights({**inputs.weights, **trained}, minibatch, numbers)
        found = torch.autograd.grad(result.loss, list(trained.values()), allow_unused=True)
        with torch.no_grad():
            gradients = {name: each for name, each in zip(trained, found, strict=True) if each is not None}
            grad_norm = torch.stack([each.float().square().sum() for each in gradients.values()]).sum().sqrt()
            is_finite = result.loss.isfinite() & grad_norm.isfinite()
            is_taken = is_finite & (result.metrics["num_samples"] > 0)
            max_norm = self._fixed.config.max_grad_norm
            # As `torch.nn.utils.clip_grad_norm_` has it. 0: no clipping.
            scale = (max_norm / (grad_norm + 1e-6)).clamp(max=1.0) if max_norm else torch.ones_like(grad_norm)
            new = dict(inputs.weights)
            for name, gradient in gradients.items():
                before, moments = inputs.weights[name].detach(), inputs.moments[name]
                after, moments_after = self._adam(before, gradient * scale, moments, learning_rate)
                new[name] = torch.where(is_taken, after, before)
                for old, other in zip(moments, moments_after, strict=True):
                    old.copy_(torch.where(is_taken, other, old))
            self._value_norm.with_weights(new, target, minibatch.mask & is_finite, minibatch.batch.obs)
            for name in gradients:
                inputs.weights[name].copy_(new[name])
            metrics = [*result.metrics.values(), result.of_all_ranks, grad_norm, (~is_finite).float()]
            return torch.stack([metric.float() for metric in metrics])

    def _adam(
        self, weight: Tensor, gradient: Tensor, moments: AdamState, learning_rate: Tensor
    ) -> tuple[Tensor, AdamState]:
        """Returns the weight after a step of AdamW, computed as by `torch.optim.AdamW`, and its moments."""
        config = self._fixed.config
        after = AdamState(
            moments.step + 1,
            torch.lerp(moments.exp_avg, gradient, 1 - config.adam_beta1),
            config.adam_beta2 * moments.exp_avg_sq + (1 - config.adam_beta2) * gradient.square(),
        )
        betas = config.adam_beta1, config.adam_beta2
        if config.weight_decay:
            weight = weight * (1 - learning_rate * config.weight_decay)
        return weight + adam_update(after, learning_rate, betas, config.adam_eps), after


class _WithWeights(nn.Module):
    """A function of the network, with other weights than it has."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def with_weights(self, weights: Mapping[str, Tensor], *args: Any) -> Any:
        return torch.func.functional_call(self, {_NETWORK + name: each for name, each in weights.items()}, args)


class _Loss(_WithWeights):
    def __init__(self, network: Any, fixed: Fixed) -> None:
        super().__init__(network)
        self._fixed = fixed

    def forward(self, minibatch: Minibatch, numbers: LossNumbers) -> Any:
        config, action_spec, bfloat16 = self._fixed
        batch = minibatch.batch
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            out = self.network.unroll(batch.obs, batch.state, batch.first)
        policy = ActionDistribution(action_spec, out.params)
        return minibatch_loss(config, minibatch, policy, out.value, self.network.value_norm, numbers=numbers)


class _ValueNorm(_WithWeights):
    def forward(self, target: Tensor, mask: Tensor, obs: Mapping[str, Tensor]) -> None:
        update_value_norm(self.network, target, mask, obs)
