"""Whether two ways of taking a step agree: other roundings do, and no program passes that trains one tensor wrongly."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_batches import make_batch

from sf.config import Config, presets
from sf.envs import ActionSpec, Planes
from sf.learner.compiled.outcome import TOLERANCE, Outcome, Trial, Written, trained
from sf.learner.update import Updater
from sf.system.native import kernels

SIZE = (4, 6)
SMALL = {"encoder_mlp_layers": (16, 16), "encoder_conv_mlp_layers": (16,), "rnn_size": 16}


def box(*shape, high=None):
    if high is None:
        return gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
    return gym.spaces.Box(0, high, shape, np.uint8)


PICTURE = {"obs": box(72, 96, 3, high=255)}
DOOM = PICTURE | {"measurements": box(5)}
BOARD = {"obs": Planes(3, 6, 7), "action_mask": gym.spaces.Box(0, 1, (7,), np.int8)}
NETWORKS = {
    "continuous": ("continuous", {"obs": box(11)}, ActionSpec((), 3), {}),
    "image_continuous": ("image_continuous", PICTURE, ActionSpec((), 3), {}),
    "doom_battle with an LSTM": ("doom_battle", DOOM, ActionSpec((3, 3, 2, 8), 0), {"core": "lstm"}),
    "symbols": ("symbols", {"obs": box(7, 7, 3, high=10)}, ActionSpec((7,), 0), {}),
    "board": ("board", BOARD, ActionSpec((7,), 0), {"encoder_conv_mlp_layers": ()}),
    "rts": ("rts", {"obs": Planes(9, 16, 16, step=0.25)}, ActionSpec((16, 6, 4), 0), {}),
}


class Steps:
    """One optimiser step of a network, which may be taken in several ways."""

    def __init__(self, name, bfloat16, num_steps_before):
        preset, space, spec, flags = NETWORKS[name]
        space, own = gym.spaces.Dict(space), presets.load(preset)
        sizes = {"rollout": SIZE[0], "batch_size": SIZE[0] * SIZE[1], "num_batches_per_epoch": 1, "num_epochs": 1}
        rates = {"lr_schedule": "constant", "lr_adaptive_max": 0.001, "lr_adaptive_max_final": 0.001}
        rates |= {"lr_schedule_kl_threshold": 0.01, "augment_by_symmetry": False, "ppo_clip_value": 0.0}
        config = Config().replace(**own | sizes | rates | SMALL | flags)
        torch.manual_seed(0)
        updater = Updater(config, space, spec, bfloat16, torch.device("cpu"))
        self.network, self.optimizer, self.step = updater.model, updater._optimizer, updater._optimizer_step
        taken = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.step, "take", lambda *args, own=self.step.take: (taken.append(args), own(*args))[1])
            for seed in range(num_steps_before + 1):
                batch = make_batch(space, spec, seed, updater.version, self.network.state_size, SIZE)
                self.trial = Trial(self.network, self.optimizer)
                updater.train_iteration(batch, 0.0)
        self.cut, _, self.config = taken[-1]
        self.tolerance = TOLERANCE[bfloat16]
        with pytest.MonkeyPatch.context() as patch:
            self.gradients, self.targets = {}, []
            patch.setattr(self.optimizer, "step", self._note_gradients)
            patch.setattr(self.network, "update_value_norm", lambda *args: self.targets.append(args))
            self.trial.take(self.take)
        assert num_steps_before == 0 or self.gradients.keys() == trained(self.network).keys()
        self.own = self.trial.take(self.take)

    def _note_gradients(self, is_skipped):
        assert not is_skipped
        self.gradients = {
            name: weight.grad.clone()
            for name, weight in trained(self.network).items()
            if weight.grad.any()  # residual blocks begin as zeros
        }

    def take(self, other_order=False):
        """The learner's own step. other_order: of the samples."""
        cut = self.cut
        if other_order:
            shape = cut.whole.mask.shape
            num = shape[1] if cut.whole.targets is None else shape.numel()
            cut = cut._replace(at=torch.randperm(num) if cut.at is None else cut.at[torch.randperm(len(cut.at))])
        return self.step._take_own(cut.taken(), self.config)

    def agrees(self, outcome):
        return self.trial.agree(outcome, self.own, self.tolerance)

    def with_gradients(self, **changed):
        """The outcome of the step with other gradients than it has."""

        def take():
            for name, weight in trained(self.network).items():
                weight.grad = (self.gradients | changed).get(name, torch.zeros_like(weight)).clone()
            self.optimizer.step(torch.zeros(()))
            self.network.update_value_norm(*self.targets[0])
            return self.own.results

        return self.trial.take(take)

    def cancels_out(self, name):
        """Whether a gradient is a single number so small that bfloat16 may double it."""
        layer = name.rpartition(".")[0]
        of_layer = sum(float(each.norm()) for key, each in self.gradients.items() if key.rpartition(".")[0] == layer)
        gradient = self.gradients[name]
        return gradient.numel() == 1 and gradient.abs() < 2.5 * self.tolerance.of_layer * of_layer

    def without(self, name, with_moments=False):
        """The outcome of the step that leaves a tensor as it was. with_moments: its moments have the step."""
        weights, moments = self.own.written
        before = self.trial._before
        if name in moments and not with_moments:
            moments = moments | {name: before.moments[name]}
        return Outcome(self.own.results, Written(weights | {name: before.weights[name]}, moments))


WAYS = [(name, True, 2) for name in NETWORKS]  # bfloat16, third step
OTHERS = [("image_continuous", True, 0), ("board", True, 0), ("rts", False, 0), ("doom_battle with an LSTM", False, 0)]
WAYS += [pytest.param(way, marks=pytest.mark.long) for way in OTHERS]


@pytest.fixture(scope="module", params=WAYS, ids=str)
def steps(request):
    return Steps(*request.param)


def test_a_step_agrees_with_itself_with_its_samples_in_another_order_and_without_loops(steps, monkeypatch):
    assert steps.agrees(steps.trial.take(steps.take))
    assert steps.agrees(steps.with_gradients())
    assert steps.agrees(steps.trial.take(lambda: steps.take(other_order=True)))
    monkeypatch.setattr(kernels, "pay", lambda *_, **__: False)
    assert steps.agrees(steps.trial.take(steps.take))


def test_a_tensor_that_is_left_as_it_was_is_found(steps):
    before = steps.trial._before.weights
    written = [name for name, tensor in steps.own.written.weights.items() if not torch.equal(tensor, before[name])]
    assert set(steps.gradients) <= set(written)
    for name in written:
        assert not steps.agrees(steps.without(name)), name
    for name in steps.gradients:
        assert not steps.agrees(steps.without(name, with_moments=True)), name


def test_a_gradient_of_half_the_size_is_found(steps):
    for name, gradient in steps.gradients.items():
        if not steps.cancels_out(name):
            assert not steps.agrees(steps.with_gradients(**{name: 0.5 * gradient})), name


def test_gradients_in_each_others_place_are_found(steps):
    for (one, gradient), (other, other_gradient) in itertools.combinations(steps.gradients.items(), 2):
        if gradient.shape != other_gradient.shape:
            continue
        # Those of neighbours in a residual block may be nearly the same.
        if (gradient - other_gradient).norm() > 1.5 * steps.tolerance.added * gradient.norm():
            assert not steps.agrees(steps.with_gradients(**{one: other_gradient, other: gradient})), (one, other)
