"""Data as a symmetry of the environment shows it."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import Config
from sf.envs import ActionSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.symmetries import UNKNOWN, Symmetry
from sf.learner.batches.batch import Batch
from sf.learner.batches.symmetric_images import SymmetricImages
from sf.learner.loss.targets import make_targets
from sf.learner.update import Updater

T, B, A = 3, 64, 4
CPU = torch.device("cpu")
MIRROR = Symmetry({"cells": np.array([2, 1, 0]), ACTION_MASK: np.array([3, 2, 1, 0])}, action=np.array([3, 2, 1, 0]))
SPACE = gym.spaces.Dict(
    {
        "cells": gym.spaces.Box(-1, 1, (1, 3), np.float32),
        "clock": gym.spaces.Box(0, 1, (1,), np.float32),
        ACTION_MASK: gym.spaces.Box(0, 1, (A,), np.int8),
    }
)


def random_batch(legal=(1, 1, 1, 1)):
    """One situation again and again, in which action 0 is rewarded."""
    discrete = torch.multinomial(torch.tensor(legal).float(), T * B, replacement=True).view(T, B)
    cells = torch.tensor([1.0, 0.0, -1.0]).expand(T + 1, B, 1, 3).contiguous()
    return Batch(
        obs={
            "cells": cells,
            "clock": torch.rand(T + 1, B, 1),
            ACTION_MASK: torch.tensor(legal, dtype=torch.int8).expand(T + 1, B, A).contiguous(),
        },
        first=torch.ones(T + 1, B, dtype=torch.bool),
        state=torch.zeros(B, 0),
        discrete=discrete.int()[..., None],
        continuous=torch.zeros(T, B, 0),
        log_prob=torch.full((T, B), -np.log(sum(legal))),
        value=torch.zeros(T, B),
        policy_version=torch.ones(T, B, dtype=torch.int32),
        reward=(discrete == 0).float(),
        terminated=torch.ones(T, B, dtype=torch.bool),
        valid=torch.ones(T, B, dtype=torch.bool),
    )


def test_an_image_is_seen_and_acted_in_the_other_way_round():
    batch, mask = random_batch(legal=(1, 1, 1, 0)), torch.rand(T, B) < 0.5
    image, image_mask = SymmetricImages([MIRROR], CPU).one_of(batch, mask)
    assert torch.equal(image.obs["cells"], batch.obs["cells"].flip(-1))
    assert torch.equal(image.obs[ACTION_MASK], batch.obs[ACTION_MASK].flip(-1))
    assert torch.equal(image.discrete, 3 - batch.discrete)
    assert image.discrete.dtype == batch.discrete.dtype
    assert torch.equal(image_mask, mask)
    for same in ("reward", "log_prob", "value", "terminated"):
        assert getattr(image, same) is getattr(batch, same)
    assert image.obs["clock"] is batch.obs["clock"]


def test_the_image_of_an_image_is_the_original():
    images, batch, mask = SymmetricImages([MIRROR], CPU), random_batch(), torch.ones(T, B, dtype=torch.bool)
    again, _ = images.one_of(*images.one_of(batch, mask))
    assert all(torch.equal(a, b) for a, b in zip(again.tensors(), batch.tensors(), strict=True))


def test_a_sample_whose_action_is_not_known_there_is_not_trained_on():
    symmetry = Symmetry(MIRROR.obs, np.array([3, UNKNOWN, 1, 0]))
    batch, mask = random_batch(), torch.ones(T, B, dtype=torch.bool)
    del batch.obs[ACTION_MASK]
    image, image_mask = SymmetricImages([symmetry], CPU).one_of(batch, mask)
    assert torch.equal(image_mask, batch.discrete[..., 0] != 1)
    assert image.discrete.min() >= 0


def test_a_sample_in_which_an_unknown_action_is_legal_is_not_trained_on():
    """The mask of its image would allow another action in the place of that one."""
    symmetry = Symmetry(MIRROR.obs, np.array([3, UNKNOWN, 1, 0]))
    batch, mask = random_batch(legal=(1, 0, 1, 1)), torch.ones(T, B, dtype=torch.bool)
    batch.obs[ACTION_MASK][:, ::2, 1] = 1
    _, image_mask = SymmetricImages([symmetry], CPU).one_of(batch, mask)
    assert not image_mask[:, ::2].any()
    assert image_mask[:, 1::2].all()


def test_no_trace_goes_through_a_step_whose_action_is_not_known():
    """The probability of what stands there in its place would say how much of what comes after it counts."""
    symmetry = Symmetry(MIRROR.obs, np.array([3, UNKNOWN, 1, 0]))
    config = Config().replace(gamma=1.0, gae_lambda=1.0).learner
    batch, mask = random_batch(legal=(1, 0, 1, 1)), torch.ones(T, B, dtype=torch.bool)
    batch.terminated[:-1] = False
    batch.obs[ACTION_MASK][1, :, 1] = 1
    batch.discrete[1] = 1
    image, _ = SymmetricImages([symmetry], CPU).one_of(batch, mask)
    value = torch.tensor([3.0, 5.0, 7.0, 0.0])[:, None].expand(T + 1, B)
    targets = make_targets(config, image, batch.log_prob + 1.0, value).value  # every ratio is clipped to 1
    assert torch.equal(targets[0], batch.reward[0] + 5.0)
    assert torch.equal(targets[2], batch.reward[2])


def test_an_agent_that_waits_does_so_in_the_image_whatever_is_known_there():
    symmetry = Symmetry(MIRROR.obs, np.array([UNKNOWN, 2, 1, 0]))
    batch, mask = random_batch(legal=(0, 1, 1, 1)), torch.ones(T, B, dtype=torch.bool)
    batch.obs[ACTION_MASK][1] = 0
    batch.discrete[1] = 0
    image, image_mask = SymmetricImages([symmetry], CPU).one_of(batch, mask)
    assert image.valid.all()
    assert image_mask.all()


def test_each_of_several_comes():
    shifts = [Symmetry({}, (np.arange(A) + shift) % A) for shift in range(A)]
    images, batch, mask = SymmetricImages(shifts, CPU), random_batch(), torch.ones(T, B, dtype=torch.bool)
    seen = {int((images.one_of(batch, mask)[0].discrete - batch.discrete)[0, 0, 0]) % A for _ in range(100)}
    assert seen == set(range(A))


@pytest.mark.parametrize(("has_symmetry", "shuffle_steps"), [(True, True), (True, False), (False, False)])
def test_what_is_learned_here_is_known_in_the_image(has_symmetry, shuffle_steps):
    """Action 0 is good, and nothing is ever seen the other way round."""
    torch.manual_seed(0)
    config = Config().replace(
        rollout=T,
        batch_size=T * B // 2,
        num_batches_per_epoch=2,
        num_epochs=4,
        encoder_mlp_layers=(32,),
        learning_rate=0.01,
        exploration_loss_coeff=0.0,
        shuffle_steps=shuffle_steps,
    )
    symmetries = [MIRROR] if has_symmetry else []
    updater = Updater(config, SPACE, ActionSpec((A,), 0), False, CPU, symmetries=symmetries)
    steps = 0
    for _ in range(20):
        steps += updater.train_iteration(random_batch(), 0.0)
        updater.version = 1  # data is as new as it can be
    image, _ = SymmetricImages([MIRROR], CPU).one_of(random_batch(), torch.ones(T, B, dtype=torch.bool))
    with torch.no_grad():
        policy, _ = updater._optimizer_step.evaluate(image)
    is_known = policy.log_prob(torch.full((T, B, 1), 3), image.continuous).exp().mean() > 0.8
    assert is_known == has_symmetry
    assert steps == 20 * config.learner.steps_per_iteration
