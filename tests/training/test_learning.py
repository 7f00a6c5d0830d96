"""Whole training runs on tiny environments with a known optimum: at most so many env steps, a seed, a threshold.

The thresholds lie between the score of a random policy and the optimum, far from both. A run ends when it is above.
"""

import math
import signal

import pytest

from sf.config import Config, presets
from sf.envs.toys import single as toys
from sf.metrics.sinks.writer import MetricsWriter
from sf.run import lifetime, trainer

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
    "summaries_every_sec": 0.2,
    "seed": 1,
}


@pytest.fixture
def learn(tmp_path, monkeypatch):
    """A function that trains until a score is reached, or all steps are done; see there."""

    def learn(env, steps, until, **flags):
        """The best mean return of the latest episodes; `until` is the one that is enough."""
        flags = {**COMMON, **flags, "env": env, "train_for_env_steps": steps, "train_dir": str(tmp_path)}
        config = Config().replace(**flags)
        scores = [-math.inf]

        class Watched(MetricsWriter):
            def write(self, record):
                super().write(record)
                if record["episodes"] >= config.run.stats_avg and record["mean_return"] is not None:
                    if max(scores) <= until < record["mean_return"]:
                        signal.raise_signal(signal.SIGINT)
                    scores.append(record["mean_return"])

        monkeypatch.setattr(lifetime, "MetricsWriter", Watched)
        scores.append(trainer.train(config)["mean_return"])  # with the episodes that ended after the last record
        return max(scores)

    return learn


def between(toy, share):
    """The score that is `share` of the way from a random policy to the optimum."""
    return toy.RANDOM_RETURN + share * (toy.BEST_RETURN - toy.RANDOM_RETURN)


def test_the_bandit_is_solved_in_synchronous_mode(learn):
    enough = between(toys.Bandit, 0.7)
    assert learn("toy_bandit", 15_000, enough, async_rl=False) > enough


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param({"with_vtrace": False, "num_epochs": 2, "num_batches_per_epoch": 2}, marks=pytest.mark.long),
        {"share_critic": False, "normalize_returns": False, "lr_schedule": "kl_adaptive"},
        pytest.param(
            {"with_ppo_clip": False, "precision": "bfloat16", "core": "lstm", "rnn_size": 32, "normalize_input": True},
            marks=pytest.mark.long,
        ),
    ],
    ids=["gae_epochs", "separate_critic", "no_clip_bfloat16_lstm"],
)
def test_the_identity_is_learned_by_every_variant_of_the_algorithm(learn, variant):
    enough = between(toys.Identity, 0.6)
    assert learn("toy_identity", 50_000, enough, **variant) > enough


@pytest.mark.long
@pytest.mark.parametrize("core", ["gru", "mingru", "transformer"])
def test_memory_is_solved_with_a_recurrent_core(learn, core):
    enough = between(toys.Memory, 0.8)
    assert learn("toy_memory", 40_000, enough, core=core, rnn_size=32, gae_lambda=1.0) > enough


@pytest.mark.long
def test_memory_cannot_be_solved_without_one(learn):
    assert learn("toy_memory", 16_000, math.inf, gae_lambda=1.0) < between(toys.Memory, 0.4)


@pytest.mark.long
def test_discrete_and_continuous_actions_are_learned_together(learn):
    enough = between(toys.TupleActions, 0.7)
    assert learn("toy_tuple", 120_000, enough, initial_stddev=0.5) > enough


@pytest.mark.long
def test_an_image_and_a_vector_are_learned_together(learn):
    enough = between(toys.DictObs, 0.6)
    assert learn("toy_dict", 25_000, enough, encoder_conv_mlp_layers=(32,), learning_rate=0.001) > enough


@pytest.mark.long
def test_signs_on_a_grid_are_learned_by_the_preset_of_their_kind(learn):
    enough = between(toys.Symbols, 0.5)
    assert learn("toy_symbols", 60_000, enough, **{**presets.load("symbols"), "learning_rate": 0.001}) > enough


@pytest.mark.long
def test_pendulum_is_learned_by_the_preset_of_its_kind(learn, capsys):
    enough = -800  # at random about -1200, at best about -150
    flags = {**presets.load("continuous"), "config": "continuous", "stats_avg": 50}
    assert learn("Pendulum-v1", 400_000, enough, **flags) > enough
    said = capsys.readouterr().out
    assert "starts from the preset continuous" in said
    assert "actors: trajectories of 64 steps (--rollout), minibatches of 256 (--batch_size)" in said


@pytest.mark.long
def test_cartpole_is_learned_by_its_preset(learn):
    enough = 120  # at random about 20, at best 500
    assert learn("CartPole-v1", 250_000, enough, **presets.load("fast")) > enough
