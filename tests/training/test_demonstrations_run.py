"""What a player does is recorded and cloned, and a run with demonstrations goes on as if it was never stopped."""

import numpy as np
import pytest
from corridor_env import LENGTH, SETTINGS
from runs import train_here

from sf import load_policy
from sf.envs import EnvOptions, describe
from sf.envs.errors import UsageError
from sf.evaluation import task
from sf.learner.demonstrations import cloning
from sf.storage import checkpoint
from sf.storage.demonstrations import minari_set
from sf.storage.demonstrations.minari_set import MinariEpisode, MinariSet
from sf.tools.commands import record
from sf.tools.commands.record import RecordFlags

ENV = "corridor_env:Corridor"
FLAGS = [*SETTINGS, "--learning_rate", "0.003", "--demonstrations", "corridor/right-v0"]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Recorded by a command that was killed before it had written the data set."""
    directory = tmp_path_factory.mktemp("sets")
    flags = RecordFlags(player="corridor_env:go_right", to="corridor/right-v0", env=ENV, episodes=12, num_workers=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(directory))
        with pytest.MonkeyPatch.context() as killed:
            killed.setattr(minari_set, "write", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                record._run(flags)
        with pytest.raises(UsageError, match="unfinished recording"):
            record._run(RecordFlags(player="random", to="corridor/right-v0", env=ENV, episodes=12))
        with pytest.MonkeyPatch.context() as recorded:
            recorded.setattr(task, "evaluate", lambda *args: pytest.fail("it is played again"))
            record._run(flags)
        yield directory


def test_a_recording_has_all_steps_of_whole_episodes(sets):
    assert [path.name for path in (sets / "corridor").iterdir()] == ["right-v0"]
    found = MinariSet("corridor/right-v0")
    assert found.num_episodes == 12
    for episode in found.episodes():
        np.testing.assert_array_equal(episode.observations[:-1].argmax(-1), np.arange(LENGTH))
        assert episode.actions.tolist() == [1] * LENGTH
        assert episode.rewards.tolist() == [0.0] * (LENGTH - 1) + [1.0]
        assert episode.terminations.nonzero()[0].tolist() == [LENGTH - 1]


def test_a_policy_clones_and_goes_on_and_demonstrations_beside_a_run_show_it_what_it_would_not_find(sets, tmp_path):
    clones = [*FLAGS, "--bc_steps", "60", "--experiment", "clone"]
    train_here(tmp_path, *clones, "--train_for_env_steps", "0", env=ENV)
    policy = load_policy(tmp_path / "clone")
    seen = np.eye(LENGTH + 1, dtype=np.float32)[:LENGTH]
    assert [policy.act(row, deterministic=True) for row in seen] == [1] * LENGTH
    summary = train_here(tmp_path, *clones, "--train_for_env_steps", "2000", env=ENV)
    assert summary["mean_return"] > 0.3  # without demonstrations 0
    beside = [*FLAGS, "--experiment", "beside", "--train_for_env_steps", "10000", "--anneal", "demo_coeff=1:0.5@10000"]
    assert train_here(tmp_path, *beside, env=ENV)["mean_return"] > 0.3


def test_a_synchronous_run_that_was_stopped_while_it_cloned_and_later_equals_one_that_was_not_to_the_bit(
    sets, tmp_path, monkeypatch
):
    """With episodes of one step, none of which a stop cuts."""
    spec = describe("toy_bandit", EnvOptions())
    rng, ends = np.random.default_rng(0), np.ones(1, bool)
    episodes = [
        MinariEpisode(np.zeros((2, 1), np.float32), np.array([2]), rng.normal(size=1), ends, ~ends) for _ in range(40)
    ]
    minari_set.write("bandit-v0", spec.native_obs_space, spec.action_space, episodes, {})
    flags = ["--serial", "true", "--core", "gru", "--rnn_size", "8", "--num_epochs", "2", "--normalize_returns", "true"]
    flags += ["--demonstrations", "bandit-v0", "--bc_steps", "30", "--anneal", "demo_coeff=1:0.1@700"]
    train_here(tmp_path, *flags, "--experiment", "at_once", "--train_for_env_steps", "1280", env="toy_bandit")
    parts = [*flags, "--experiment", "in_parts"]
    calls = []
    with monkeypatch.context() as stopped_by_hand:
        stopped_by_hand.setattr(cloning.Cloning, "_is_to_stop", lambda self: calls.append(0) or len(calls) == 5)
        train_here(tmp_path, *parts, "--train_for_env_steps", "0", env="toy_bandit")
    stopped = checkpoint.load(checkpoint.latest(tmp_path / "in_parts" / "checkpoints"))
    assert 0 < stopped.state["cloning"]["steps"] < 30
    assert "is_over" not in stopped.state["cloning"]
    for steps in ("0", "512", "1280"):
        train_here(tmp_path, *parts, "--train_for_env_steps", steps, env="toy_bandit")
    at_once, in_parts = (
        checkpoint.load(checkpoint.latest(tmp_path / name / "checkpoints")).tensors for name in ("at_once", "in_parts")
    )
    assert at_once.keys() == in_parts.keys()
    assert [name for name in at_once if not np.array_equal(at_once[name], in_parts[name])] == []


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--demonstrations", "missing-v0"], "no data set 'missing-v0'"),
        (["--train_for_env_steps", "0"], "train_for_env_steps is 0"),
        (["--demonstrations", "corridor/right-v0"], "has the observations"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_anything_starts(sets, tmp_path, flags, word):
    with pytest.raises(ValueError, match=word):
        train_here(tmp_path, *flags)
    assert not list(tmp_path.iterdir())
