import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.model.normalizers import (
    EPSILON,
    LARGEST_SAMPLE,
    ImageNormalizer,
    NoReturnNormalizer,
    ObsNormalizer,
    ReturnNormalizer,
    RunningMoments,
    SymlogReturns,
)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_batches_merge_to_the_moments_of_all_samples_of_their_masks(shape):
    torch.manual_seed(0)
    moments, kept = RunningMoments(shape), []
    for size in (1, 7, 30, 2):
        samples, mask = 5 + 3 * torch.randn(size, *shape), torch.rand(size) < 0.7
        moments.update(torch.where(mask.view(-1, *[1] * len(shape)), samples, torch.nan), mask)
        kept.append(samples[mask].double().numpy())
    everything = np.concatenate(kept)
    assert moments.mean.shape == moments.var.shape == shape
    np.testing.assert_allclose(moments.mean, everything.mean(0))
    np.testing.assert_allclose(moments.var, everything.var(0))
    assert moments.count == len(everything)


def test_a_batch_without_samples_changes_nothing():
    moments = RunningMoments((2,))
    for _ in range(2):
        before = [buffer.clone() for buffer in moments.buffers()]
        moments.update(torch.randn(4, 2), torch.zeros(4, dtype=torch.bool))
        assert all(torch.equal(a, b) for a, b in zip(before, moments.buffers(), strict=True))
        moments.update(torch.randn(4, 2), torch.ones(4, dtype=torch.bool))


def test_a_far_mean_and_a_large_count_lose_no_digits():
    moments = RunningMoments(())
    moments.count.fill_(1e10)
    moments.mean.fill_(1e6)
    before = moments.count.item(), moments.mean.item()
    moments.update(torch.full((8,), 1e6 + 1), torch.ones(8, dtype=torch.bool))
    assert moments.count.item() == before[0] + 8
    assert moments.mean.item() == pytest.approx(before[1] + 8e-10, abs=2e-10)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_numbers_far_from_0_keep_their_digits(dtype):
    norm = ObsNormalizer({"clock": gym.spaces.Box(0, 2**62, (1,), np.float64)})
    clock = torch.arange(1_700_000_000, 1_700_003_600, dtype=dtype)[:, None]
    norm.update({"clock": clock[:, None]}, torch.ones(len(clock), 1, dtype=torch.bool))
    out = norm({"clock": clock}, torch.float32)["clock"]
    np.testing.assert_allclose(out[:, 0], (np.arange(3600) - 1799.5) / np.arange(3600).std(), atol=1e-5)


def test_normalised_observations_have_mean_0_stddev_1_and_are_clipped():
    norm = ObsNormalizer({"numbers": gym.spaces.Box(-np.inf, np.inf, (2,))})
    obs = {"numbers": 100 + 5 * torch.randn(50, 20, 2), "image": torch.zeros(50, 20, 1)}
    mask = torch.ones(60, 20, dtype=torch.bool)
    mask[50:] = False
    absent = torch.zeros(10, 20, 2)
    norm.update({"numbers": torch.cat((obs["numbers"], absent))}, mask)
    out = norm(obs, torch.float32)
    assert out["image"] is obs["image"]
    torch.testing.assert_close(out["numbers"].mean((0, 1)), torch.zeros(2), atol=1e-4, rtol=0)
    torch.testing.assert_close(out["numbers"].std((0, 1), correction=0), torch.ones(2), atol=1e-4, rtol=0)
    assert norm({"numbers": torch.full((1, 2), 1e9)}, torch.float32)["numbers"].tolist() == [[10.0, 10.0]]


def test_in_normalised_images_what_stays_is_0_and_what_moves_has_stddev_1_on_average():
    torch.manual_seed(0)
    norm = ObsNormalizer({"image": gym.spaces.Box(0, 255, (4, 6, 1), np.uint8)})
    frames = torch.full((8, 4, 4, 6, 1), 90, dtype=torch.uint8)  # [T, B, H, W, C]
    frames[:, :, 1:3] = torch.randint(0, 255, (8, 4, 2, 6, 1), dtype=torch.uint8)
    raw = norm({"image": frames[0]}, torch.float32)["image"]
    torch.testing.assert_close(raw, frames[0] / 255)  # before the first update
    norm.update({"image": frames}, torch.ones(8, 4, dtype=torch.bool))  # 32 frames: all of them count
    out = norm({"image": frames.flatten(0, 1)}, torch.float32)["image"]
    assert out.shape == (32, 4, 6, 1)
    torch.testing.assert_close(out.mean(0), torch.zeros(4, 6, 1), atol=1e-4, rtol=0)
    assert out[:, [0, 3]].abs().max() < 1e-4
    assert out.square().mean().sqrt().item() == pytest.approx(1, abs=1e-3)
    half = norm({"image": frames.flatten(0, 1)}, torch.bfloat16)["image"]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), out, atol=0.02, rtol=0.01)


def test_where_nothing_moves_a_grey_level_is_one_standard_deviation():
    norm, frames = ImageNormalizer((2, 3, 1)), torch.full((8, 2, 3, 1), 90, dtype=torch.uint8)
    norm.update(frames, torch.ones(8, dtype=torch.bool))
    torch.testing.assert_close(norm(frames, torch.float32), torch.zeros(8, 2, 3, 1))
    torch.testing.assert_close(norm(frames + 2, torch.float32), torch.full((8, 2, 3, 1), 2.0))


def test_images_none_of_which_count_change_nothing():
    norm, frames = ImageNormalizer((2, 3, 1)), torch.randint(0, 256, (8, 2, 3, 1), dtype=torch.uint8)
    for _ in range(2):  # before the first frames that count, and after
        before = [buffer.clone() for buffer in norm.buffers()]
        norm.update(frames, torch.zeros(8, dtype=torch.bool))
        assert all(torch.equal(a, b) for a, b in zip(before, norm.buffers(), strict=True))
        norm.update(frames, torch.ones(8, dtype=torch.bool))


@pytest.mark.parametrize(("rollout", "num_trajectories"), [(32, 64), (32, 32), (32, 256), (64, 32), (128, 16)])
def test_the_few_images_that_count_are_of_many_trajectories_and_of_all_times(rollout, num_trajectories):
    frame = torch.arange(rollout * num_trajectories).float()
    row, column = frame // num_trajectories, frame % num_trajectories
    for of_frame, expected in ((row, (rollout - 1) / 2), (column, (num_trajectories - 1) / 2)):
        scaled = (of_frame * 200 / of_frame.max()).round()
        norm = ImageNormalizer((1, 1, 1))
        norm.update(scaled.to(torch.uint8).view(-1, 1, 1, 1), torch.ones(len(frame), dtype=torch.bool))
        assert norm.moments.mean.item() == pytest.approx(expected * 200 / of_frame.max().item(), rel=0.1)
        assert norm.moments.stddev.item() == pytest.approx(200 / 12**0.5, rel=0.2)  # of a uniform distribution


def test_normalised_values_come_back_to_the_scale_of_returns():
    norm, returns = ReturnNormalizer(), 100 + 5 * torch.randn(8, 3)
    norm.update(returns, torch.ones(8, 3, dtype=torch.bool), torch.nn.Linear(2, 1))
    normal = norm.normalize(returns)
    assert normal.dtype == torch.float32
    assert normal.mean().item() == pytest.approx(0, abs=1e-5)
    assert normal.var(correction=0).item() == pytest.approx(1, abs=10 * EPSILON)
    torch.testing.assert_close(norm.denormalize(normal), returns)


def test_without_normalisation_values_stay_as_they_are():
    norm, returns = NoReturnNormalizer(), torch.randn(4, 2)
    norm.update(returns, torch.ones(4, 2, dtype=torch.bool), torch.nn.Linear(2, 1))
    assert norm.normalize(returns) is returns
    assert norm.denormalize(returns) is returns
    assert list(norm.buffers()) == []


def test_symlog_is_a_logarithm_on_both_sides_of_0_and_comes_back():
    norm, returns = SymlogReturns(), torch.tensor([[-1e6, -20.0, -1e-4, 0.0], [1e-4, 0.5, np.e - 1, 1e6]])
    head = torch.nn.Linear(2, 1)
    before = [parameter.clone() for parameter in head.parameters()]
    assert not norm.normalize(returns).any()
    assert not norm.denormalize(returns.clamp(-9, 9)).any()
    norm.update(
        torch.tensor([[0.5, -2.0, 0.0, 7.0]]), torch.tensor([[True, True, True, False]]), head
    )  # their size is 1
    found = norm.normalize(returns)
    expected = [[(1 if x > 0 else -1) * np.log(abs(x) + 1) for x in row] for row in returns.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found[1, 2].item() == pytest.approx(1.0)
    torch.testing.assert_close(norm.denormalize(found), returns)
    assert found.dtype == norm.denormalize(found).dtype == torch.float32
    assert all(torch.equal(a, b) for a, b in zip(before, head.parameters(), strict=True))


def test_new_statistics_leave_the_predictions_in_the_scale_of_returns_as_they_were():
    torch.manual_seed(0)
    norm, head, features = ReturnNormalizer(), torch.nn.Linear(4, 1), torch.randn(6, 4)
    assert not norm.denormalize(head(features)).any()
    weights = [parameter.clone() for parameter in head.parameters()]
    norm.update(torch.randn(5, 2), torch.ones(5, 2, dtype=torch.bool), head)  # the first leave the head as it is
    assert all(torch.equal(a, b) for a, b in zip(weights, head.parameters(), strict=True))
    before = norm.denormalize(head(features))
    for scale in (50.0, 0.1):
        norm.update(scale * torch.randn(5, 2) - 7, torch.ones(5, 2, dtype=torch.bool), head)
        torch.testing.assert_close(norm.denormalize(head(features)), before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_samples_that_are_not_finite_or_far_too_large_are_left_out(odd, shape):
    torch.manual_seed(0)
    samples, some = torch.randn(10, *shape), torch.arange(10) % 3 == 0
    spoiled = samples.clone()
    spoiled.view(10, -1)[some, -1] = odd  # one number of a sample is enough
    with_odd, without = RunningMoments(shape), RunningMoments(shape)
    with_odd.update(spoiled, torch.ones(10, dtype=torch.bool))
    without.update(samples, ~some)
    assert with_odd.count == 6
    assert all(torch.equal(a, b) for a, b in zip(with_odd.buffers(), without.buffers(), strict=True))


def test_statistics_of_the_largest_samples_are_finite_in_the_vector_that_policy_workers_get():
    moments = RunningMoments(())
    moments.update(torch.tensor([LARGEST_SAMPLE, -LARGEST_SAMPLE]), torch.ones(2, dtype=torch.bool))
    assert moments.count == 2
    assert all(buffer.float().isfinite() for buffer in moments.buffers())


def test_value_targets_that_are_not_finite_leave_the_head_and_the_statistics_as_they_were():
    norm, head = ReturnNormalizer(), torch.nn.Linear(4, 1)
    norm.update(torch.randn(5, 2), torch.ones(5, 2, dtype=torch.bool), head)
    before = [tensor.clone() for tensor in (*norm.buffers(), *head.parameters())]
    norm.update(torch.full((5, 2), torch.nan), torch.ones(5, 2, dtype=torch.bool), head)
    assert all(torch.equal(a, b) for a, b in zip(before, (*norm.buffers(), *head.parameters()), strict=True))
