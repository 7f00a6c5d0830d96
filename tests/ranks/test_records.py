"""One record of a run from those of its ranks."""

from __future__ import annotations

import numpy as np
import pytest

from sf.metrics.latest_episodes import EndedEpisode
from sf.metrics.policy_progress import episode_means
from sf.ranks.records import merged


def record(episodes, **others):
    ended = [EndedEpisode(value, 2 * value, 8 * value, {"kills": value}, 0, 0, 0.0) for value in episodes]
    return {**episode_means(ended), **others}


def test_returns_of_all_ranks_are_those_of_all_their_episodes():
    parts = [np.random.default_rng(seed).normal(seed, 1 + seed, size=3 + seed).tolist() for seed in range(3)]
    of_all = merged([record(part) for part in parts])
    assert of_all == pytest.approx(record([value for part in parts for value in part]))


def test_there_is_no_return_until_each_rank_has_one():
    for ranks in ([record([]), record([])], [record([3.0]), record([]), record([5.0])], [record([]), record([3.0])]):
        of_all = merged(ranks)
        means = [value for name, value in of_all.items() if "return" in name or name.startswith("stats/")]
        assert set(means) == {None}
        assert of_all["episodes_in_mean"] == 0
    of_two = merged([record([3.0]), record([5.0])])
    assert (of_two["mean_return"], of_two["episodes_in_mean"]) == (4.0, 2)


def test_counts_are_sums_shares_are_means_and_the_rest_is_that_of_the_first_rank():
    assert merged([record([1.0]), record([1.0], **{"train/loss": 3.0})]) == record([1.0, 1.0])  # not measured yet
    first = record(
        [1.0],
        **{"env_steps": 100, "sampled_env_frames_per_second": 10.0, "restarts": 1, "policy/busy_share": 0.2},
        **{"cores/learner": 0.5, "cores/in_use_share": 0.5, "train/loss": 3.0, "train/lag_max": 4.0},
    )
    second = record(
        [1.0],
        **{"env_steps": 100, "sampled_env_frames_per_second": 30.0, "restarts": 2, "policy/busy_share": 0.6},
        **{"cores/learner": 1.0, "cores/in_use_share": 1.0, "train/loss": 3.0, "train/lag_max": 9.0},
    )
    of_all = merged([first, second])
    assert of_all == pytest.approx(
        record(
            [1.0, 1.0],
            **{"env_steps": 100, "sampled_env_frames_per_second": 40.0, "restarts": 3, "policy/busy_share": 0.4},
            **{"cores/learner": 1.5, "cores/in_use_share": 0.75, "train/loss": 3.0, "train/lag_max": 9.0},
        )
    )


def test_returns_of_each_policy_are_those_of_its_episodes_on_all_ranks():
    first = {**record([1.0]), **{f"policy_00/{name}": value for name, value in record([1.0]).items()}}
    second = {**record([9.0] * 3), **{f"policy_00/{name}": value for name, value in record([9.0] * 3).items()}}
    of_all = merged([first, second])
    assert (of_all["mean_return"], of_all["policy_00/mean_return"]) == (7.0, 7.0)
    assert of_all["policy_00/episodes_in_mean"] == 4
