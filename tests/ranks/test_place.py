"""Where a trainer stands among the ranks."""

from __future__ import annotations

import os

import pytest

from sf.config import Config
from sf.envs.errors import UsageError
from sf.ranks.place import ALONE_HERE, LaunchMark, Place, require_can_be_ranked

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
TORCHRUN |= {"MASTER_ADDR": "here", "MASTER_PORT": "29500"}


def test_torchrun_says_which_rank_this_is():
    assert Place.from_environment(TORCHRUN) == Place(5, 8, 1, 4, is_by_torchrun=True)
    assert Place.from_environment({}) == ALONE_HERE
    assert Place.from_environment({"RANK": "3"}) == ALONE_HERE  # some shells have such a variable


@pytest.mark.parametrize(
    "broken", [{"LOCAL_RANK": "one"}, {"LOCAL_WORLD_SIZE": None}, {"MASTER_ADDR": None}, {"MASTER_PORT": "abc"}]
)
def test_a_variable_that_is_not_as_torchrun_sets_it_is_said(broken):
    variables = {name: value for name, value in {**TORCHRUN, **broken}.items() if value is not None}
    ((name, value),) = broken.items()
    what = "not there" if value is None else f"'{value}'"
    with pytest.raises(UsageError, match=f"{name} is {what}"):
        Place.from_environment(variables)


def test_ranks_of_one_machine_share_its_cores(monkeypatch):
    cores, taken = {0, 1, 2, 3, 4}, []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, own: taken.append(set(own)))
    for local_rank in range(2):
        monkeypatch.setattr("sf.ranks.place._taken", [])  # each in a process of its own
        Place(rank=6 + local_rank, size=8, local_rank=local_rank, local_size=2).take_cores()
    assert set.union(*taken) == cores
    assert not taken[0] & taken[1]
    Place(rank=7, size=8, local_rank=1, local_size=2).take_cores()
    assert len(taken) == 2  # it has its share
    monkeypatch.setattr("sf.ranks.place._taken", [])
    Place(rank=3, size=8, local_rank=0, local_size=1).take_cores()
    assert len(taken) == 2  # alone on its machine


def test_the_first_rank_does_what_is_done_once_and_no_two_draw_the_same_numbers():
    run = Config().replace(seed=7, save_milestones_sec=60, eval_every_env_steps=1000, restart_behavior="restart")
    places = [Place(rank, 3, rank, 3) for rank in range(3)]
    configs = [place.config_of(run) for place in places]
    assert configs[0] == run
    assert len({config.run.seed for config in configs}) == 3
    assert configs[1].run.save_milestones_sec == 0
    assert configs[1].evaluation.eval_every_env_steps is None


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"past_share": 0.2}, "players that do not learn"),
        ({"gradient_workers": 1}, "gradient_workers"),
        ({"algorithm": "search", "buffer_games": 100}, "buffer_games"),
    ],
)
def test_what_ranks_cannot_do_is_one_sentence(flags, what):
    place = Place(0, 2, 0, 2)
    require_can_be_ranked(Config(), place)
    with pytest.raises(ValueError, match=what):
        require_can_be_ranked(Config().replace(**flags), place)


def test_what_may_be_started_again_at_any_moment_does_not_begin_anew_each_time():
    anew = Config().replace(restart_behavior="overwrite")
    require_can_be_ranked(anew, Place(0, 2, 0, 2))  # on one machine it is known which start is the first
    with pytest.raises(ValueError, match="restart_behavior is overwrite"):
        require_can_be_ranked(anew, Place(0, 2, 0, 1))


def test_a_learner_that_waits_for_a_rank_is_not_to_be_killed_before_that_one_is_missed():
    with pytest.raises(ValueError, match="worker_timeout_s is 10, and rank_timeout_s 30"):
        require_can_be_ranked(Config().replace(worker_timeout_s=10.0), Place(0, 2, 0, 2))


def mark(folder, launch, place=None):
    place = place or Place(0, 2, 0, 2, is_by_torchrun=True)
    return LaunchMark(folder, place, {"TORCHELASTIC_RUN_ID": launch})


def test_a_launch_knows_and_removes_its_own_mark_alone_which_the_first_rank_sets(tmp_path):
    for place in (Place(1, 2, 1, 2, is_by_torchrun=True), ALONE_HERE):
        mark(tmp_path, "this", place).set()
    assert not mark(tmp_path, "this").is_there()
    folder = tmp_path / "ranks"
    folder.write_text("")
    own = mark(folder, "this")
    own.set()
    folder.unlink()
    own.set()  # now that the disk takes it
    assert mark(folder, "this").is_there()
    assert not mark(folder, "another").is_there()
    mark(folder, "another").remove()
    assert mark(folder, "this").is_there()
    mark(folder, "this").remove()
    assert not mark(folder, "this").is_there()
    (folder / "under_way").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="under_way is a link"):
        mark(folder, "this").is_there()
