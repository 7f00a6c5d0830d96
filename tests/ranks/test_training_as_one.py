"""Two ranks with half of the samples each train as one learner with all of them."""

from __future__ import annotations

import json
import sys

import one_rank
import pytest
import torch
import warm
from network_numbers import numbers_of

WAYS = {  # beside those of test_merged_statistics.py, with a GRU and minibatches
    "without memory": {"core": "none"},
    "targets once": {"core": "none", "shuffle_steps": True, "decoupled_clip": True},
    "GAE, plain gradient": {"core": "none", "with_vtrace": False, "with_ppo_clip": False},
    "adaptive rate": {"core": "none", "lr_schedule": "kl_adaptive", "lr_adaptive_max": 0.01},
    "own encoder with a spare layer": {"core": "gru", "encoder": "spare_encoder:Spare"},
    "critic apart": {"core": "gru", "share_critic": False, "lr_schedule": "linear", "train_for_env_steps": 1000},
}

COMPRESSED = {"compressed": {"core": "none", "compress_gradients": True}}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two ranks came to, by the name of the way."""
    folder = tmp_path_factory.mktemp("ranks")
    outs = [folder / f"rank_{rank}" for rank in range(2)]
    words = [str(len(outs)), str(folder / "store")]
    processes = [
        warm.Popen([sys.executable, one_rank.__file__, str(rank), *words, str(out), json.dumps(WAYS | COMPRESSED)])
        for rank, out in enumerate(outs)
    ]
    assert [process.wait(timeout=300) for process in processes] == [0] * len(outs)
    return [torch.load(out, weights_only=True) for out in outs]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_two_ranks_train_as_one_learner_with_all_samples(ranks, monkeypatch, way):
    monkeypatch.setattr(torch, "randperm", torch.arange)
    weights, metrics = one_rank.trained(WAYS[way])
    (weights_0, metrics_0), (weights_1, _) = (rank[way] for rank in ranks)
    assert torch.equal(weights_0, weights_1)
    torch.testing.assert_close(weights_0, weights, rtol=1e-5, atol=1e-5)
    untrained = numbers_of(one_rank.make_updater(one_rank.CONFIG.replace(**WAYS[way])).model)
    assert (weights - untrained).abs().max() > 0.01
    for iteration, of_one in metrics.items():
        of_two = metrics_0[iteration]
        shared = of_one.keys() - {
            "lag_mean",
            "lag_max",
            "masked_share",
            "sample_reuse",
        }  # these are of the samples of each rank
        expected = {key: of_one[key] for key in shared}
        assert {key: of_two[key] for key in shared} == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.long
def test_ranks_whose_gradients_are_sent_as_bfloat16_have_the_same_weights_to_the_bit(ranks, monkeypatch):
    monkeypatch.setattr(torch, "randperm", torch.arange)
    of_one, _ = one_rank.trained(COMPRESSED["compressed"])
    (weights_0, _), (weights_1, _) = (rank["compressed"] for rank in ranks)
    assert torch.equal(weights_0, weights_1)
    assert not torch.equal(weights_0, ranks[0]["without memory"][0])  # they were rounded
    torch.testing.assert_close(weights_0, of_one, rtol=0.01, atol=0.01)
