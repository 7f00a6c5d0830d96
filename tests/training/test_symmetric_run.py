"""Runs whose data is augmented by the symmetries of their game."""

import re

import pytest
from runs import DEVICE

from sf import train
from sf.config import Config
from sf.envs.errors import UsageError
from sf.run.planning import make_plan

AUGMENTED = {"augment_by_symmetry": True, "num_epochs": 2, "num_batches_per_epoch": 2, "device": DEVICE}


def test_a_run_with_images_of_its_data_takes_as_many_steps_as_without(tmp_path):
    pytest.importorskip("pyspiel")
    flags = {**AUGMENTED, "num_workers": 1, "num_envs_per_worker": 4, "rollout": 16, "batch_size": 64}
    versions = []
    for is_augmented in (True, False):
        summary = train(
            env="openspiel:tic_tac_toe",
            train_for_env_steps=400,
            train_dir=str(tmp_path),
            experiment=f"augmented_{is_augmented}",
            async_rl=False,
            **{**flags, "augment_by_symmetry": is_augmented},
        )
        assert summary["restarts"] == summary["train/skipped_updates"] == 0
        versions.append(summary["train/policy_version"])
    assert versions[0] == versions[1] > 1


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"env": "CartPole-v1"}, "augment_by_symmetry is true, but no symmetry of CartPole-v1 is known"),
        ({"env": "openspiel:chess"}, "augment_by_symmetry is true, but no symmetry of openspiel:chess is known"),
        ({"env": "openspiel:tic_tac_toe", "core": "gru"}, "but the network has a recurrent state"),
    ],
)
def test_what_cannot_be_augmented_is_said_before_anything_starts(flags, says):
    if "openspiel" in flags["env"]:
        pytest.importorskip("pyspiel")
    with pytest.raises(UsageError, match=re.escape(says)):
        make_plan(Config().replace(**{**AUGMENTED, **flags}))


@pytest.mark.parametrize(
    ("flags", "is_augmented"),
    [
        ({"env": "openspiel:tic_tac_toe"}, True),
        ({"env": "openspiel:tic_tac_toe", "core": "gru"}, False),
        ({"env": "openspiel:tic_tac_toe", "num_epochs": 1}, False),
        ({"env": "openspiel:chess"}, False),
        ({"env": "CartPole-v1"}, False),
    ],
)
def test_auto_augments_where_that_can_be(flags, is_augmented):
    if "openspiel" in flags["env"]:
        pytest.importorskip("pyspiel")
    plan = make_plan(Config().replace(**{**AUGMENTED, "augment_by_symmetry": "auto", **flags}))
    assert bool(plan.symmetries) == is_augmented


def test_one_epoch_leaves_none_for_images():
    with pytest.raises(ValueError, match="augment_by_symmetry is true and num_epochs is 1: every second epoch"):
        Config().replace(**{**AUGMENTED, "num_epochs": 1})
