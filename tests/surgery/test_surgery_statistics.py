"""Entries that surgery adds to statistics have counts of their own."""

import gymnasium as gym
import numpy as np
import torch
from patients import box, operate, patient, picture, resumed

from sf.model.normalizers import ImageNormalizer, RunningMoments

TWO = gym.spaces.Discrete(2)


def moments_of(updater):
    return updater.model.obs_norm.normalizers[0].moments


def test_an_entry_that_is_added_has_the_mean_and_variance_of_its_own_samples_and_old_ones_go_on():
    rng = np.random.default_rng(0)
    early, late = rng.normal(3.0, 2.0, (5000, 2)), rng.normal([3.0, 3.0, -40.0], [2.0, 2.0, 5.0], (30, 3))
    saved = patient({"obs": box(2)}, TWO, num_iterations=0)
    updater, _ = resumed(saved, {"obs": box(2)}, TWO)
    moments_of(updater).update(torch.from_numpy(early), torch.ones(len(early), dtype=torch.bool))
    saved.tensors.update({f"model/{name}": tensor for name, tensor in updater.model.state_dict().items()})
    made = operate(saved, {"obs": box(3)}, TWO).checkpoint()
    for _ in range(2):  # it lasts beyond the next checkpoint
        updater, _ = resumed(made, {"obs": box(3)}, TWO)
        made.tensors.update({f"model/{name}": tensor for name, tensor in updater.model.state_dict().items()})
    moments = moments_of(updater)
    for part in np.split(late, 3):
        moments.update(torch.from_numpy(part), torch.ones(len(part), dtype=torch.bool))
    both = np.concatenate([early, late[:, :2]])
    np.testing.assert_allclose(moments.mean, [*both.mean(0), late[:, 2].mean()], rtol=1e-12)
    np.testing.assert_allclose(moments.var, [*both.var(0), late[:, 2].var()], rtol=1e-12)
    np.testing.assert_array_equal(moments.seen, [5030, 5030, 30])


def test_a_second_surgery_keeps_the_counts_of_the_first():
    made = patient({"obs": box(2)}, TWO)
    counts = []
    for num in (3, 4):
        updater, _ = resumed(made, {"obs": box(num - 1)}, TWO)
        moments_of(updater).update(torch.rand(10, num - 1), torch.ones(10, dtype=torch.bool))
        made.tensors.update({f"model/{name}": tensor for name, tensor in updater.model.state_dict().items()})
        counts.append(float(moments_of(updater).count))
        made = operate(made, {"obs": box(num)}, TWO).checkpoint()
    updater, _ = resumed(made, {"obs": box(4)}, TWO)
    first, second = counts
    np.testing.assert_array_equal(moments_of(updater).seen, [second, second, second - first, 0])


def test_statistics_without_additions_are_saved_as_they_were():
    moments = RunningMoments((3,))
    assert moments.state_dict().keys() == {"mean", "var", "count"}


def test_planes_that_are_added_do_not_change_the_scale_of_a_picture_at_once():
    saved = patient({"obs": picture(4, 4, 1)}, TWO, encoder="mlp")
    updater, _ = resumed(saved, {"obs": picture(4, 4, 1)}, TWO)
    before = float(updater.model.obs_norm.normalizers[0].scale)
    made = operate(saved, {"obs": picture(4, 4, 2)}, TWO).checkpoint()
    updater, _ = resumed(made, {"obs": picture(4, 4, 2)}, TWO)
    norm: ImageNormalizer = updater.model.obs_norm.normalizers[0]
    bright = torch.randint(0, 256, (2, 4, 4, 2), dtype=torch.uint8)
    bright[..., 1] = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1)  # far from what the old plane has
    norm.update(bright, torch.ones(2, dtype=torch.bool))
    assert abs(float(norm.scale) / before - 1) < 0.1
