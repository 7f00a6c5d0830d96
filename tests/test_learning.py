"""Whole training runs on tiny environments with a known optimum: a fixed number of env steps, a seed, a threshold.

The thresholds lie between the score of a random policy and the optimum, far from both.
"""

import pytest

from envs import toys
from sf import presets
from sf.config import Config
from sf.trainer import train

COMMON = {
    "num_workers": 2,
    "num_envs_per_worker": 8,
    "rollout": 16,
    "batch_size": 256,
    "encoder_mlp_layers": (32, 32),
    "learning_rate": 0.003,
    "exploration_loss_coeff": 0.003,
    "ppo_clip_ratio": 0.2,
    "normalize_returns": True,
    "device": "cpu",
    "precision": "float32",
    "learner_threads": 1,
    "summaries_every_sec": 1.0,
    "seed": 1,
}


def learn(tmp_path, env, steps, **flags):
    """The mean return of the latest episodes of a run."""
    config = Config().replace(
        **{**COMMON, "env": env, "train_for_env_steps": steps, "train_dir": str(tmp_path), **flags}
    )
    return train(config)["mean_return"]


def between(toy, share):
    """The score that is `share` of the way from a random policy to the optimum."""
    return toy.RANDOM_RETURN + share * (toy.BEST_RETURN - toy.RANDOM_RETURN)


@pytest.mark.parametrize("async_rl", [True, False])
def test_the_bandit_is_solved(tmp_path, async_rl):
    assert learn(tmp_path, "toy_bandit", 15_000, async_rl=async_rl) > between(toys.Bandit, 0.9)


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"with_vtrace": False},
        {"with_ppo_clip": False},
        {"num_epochs": 2, "num_batches_per_epoch": 2},
        {"share_critic": False, "normalize_returns": False, "lr_schedule": "kl_adaptive"},
        {"precision": "bfloat16", "core": "lstm", "rnn_size": 32, "normalize_input": True},
    ],
    ids=["default", "gae", "no_clip", "epochs", "separate_critic", "bfloat16_lstm"],
)
def test_the_identity_is_learned_by_every_variant_of_the_algorithm(tmp_path, variant):
    assert learn(tmp_path, "toy_identity", 50_000, **variant) > between(toys.Identity, 0.8)


def test_memory_is_solved_with_a_recurrent_core(tmp_path):
    score = learn(tmp_path, "toy_memory", 80_000, core="gru", rnn_size=32, gae_lambda=1.0)
    assert score > between(toys.Memory, 0.9)


def test_memory_cannot_be_solved_without_one(tmp_path):
    assert learn(tmp_path, "toy_memory", 80_000, gae_lambda=1.0) < between(toys.Memory, 0.4)


def test_continuous_actions_are_learned(tmp_path):
    assert learn(tmp_path, "toy_continuous", 120_000, initial_stddev=0.5) > between(toys.Continuous, 0.9)


def test_discrete_and_continuous_actions_are_learned_together(tmp_path):
    assert learn(tmp_path, "toy_tuple", 120_000, initial_stddev=0.5) > between(toys.TupleActions, 0.7)


def test_an_image_and_a_vector_are_learned_together(tmp_path):
    score = learn(tmp_path, "toy_dict", 25_000, encoder_conv_mlp_layers=(32,), learning_rate=0.001)
    assert score > between(toys.DictObs, 0.8)


def test_cartpole_is_solved_by_its_preset(tmp_path):
    preset = presets.load("CartPole-v1")
    config = Config().replace(
        **preset, env="CartPole-v1", seed=1, train_for_env_steps=250_000, train_dir=str(tmp_path), num_workers=2
    )
    assert train(config)["mean_return"] >= 475
