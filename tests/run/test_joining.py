"""How a trainer becomes one of several ranks."""

from __future__ import annotations

import json

import pytest
from torch.distributed import HashStore

from sf.config import Config
from sf.envs import UsageError
from sf.ranks.place import FAILURE, FINAL_FAILURE, USER_ERROR, Place
from sf.ranks.rendezvous import Rendezvous
from sf.run import joining
from sf.run.children.verdict import ChildError
from sf.run.planning import make_plan


@pytest.fixture
def store(monkeypatch):
    """Where the ranks meet."""
    store = HashStore()
    monkeypatch.setattr(joining, "meet", lambda *args: Rendezvous(store, "name", sees_disk_of_first=True))
    return store


@pytest.fixture
def joined(store, tmp_path):
    """A function: one of two ranks that has met the other."""
    flags = {"env": "CartPole-v1", "train_dir": str(tmp_path), "restart_behavior": "restart", "num_workers": 1}
    config = Config().replace(**flags, device="cpu")
    return lambda rank: joining.joined(config, make_plan(config, Place(rank, 2, rank, 2, is_by_torchrun=True)))


@pytest.fixture
def join(joined, monkeypatch):
    """A function: how a rank of a launch treats the run that it finds, and its mark."""

    def of(launch, num_restarts, rank=0):
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", launch)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(num_restarts))
        with joined(rank) as rank_of_two:
            return rank_of_two.config.run.restart_behavior, rank_of_two.mark

    return of


def fail(joined, error):
    with joined(rank=1):
        raise error


def says(store, **words):
    """The other rank does."""
    store.set("line/0", json.dumps({"host": "here", "beat": 1, "has_ended": False, **words}))


def test_a_rank_that_fails_over_one_that_would_fail_again_is_not_started_again_either(joined, store):
    says(store, status=FINAL_FAILURE)
    with pytest.raises(ChildError, match="the connection is closed") as caught:
        fail(joined, ChildError("the connection is closed"))
    assert caught.value.is_final
    says(store, status=USER_ERROR)
    with pytest.raises(UsageError, match="the connection is closed"):
        fail(joined, ChildError("the connection is closed"))


def test_a_rank_that_fails_over_one_that_may_be_started_again_may_be_so_itself(joined, store):
    says(store, status=FAILURE, failure="its learner has died")
    with pytest.raises(ChildError) as caught:
        fail(joined, ChildError("the connection is closed"))
    assert not caught.value.is_final


@pytest.mark.parametrize("error", [ChildError("a number", is_final=True), UsageError("a flag"), RuntimeError("theirs")])
def test_the_error_of_a_rank_that_fails_by_itself_is_its_own(joined, store, error):
    says(store, status=FINAL_FAILURE)
    with pytest.raises(type(error)) as caught:
        fail(joined, error)
    assert caught.value is error


def test_ranks_that_are_started_again_resume_the_run_of_their_own_launch(join):
    treatment, mark = join("this", num_restarts=0)
    assert treatment == "restart"
    mark.set()
    assert join("this", num_restarts=1)[0] == "resume"


def test_ranks_that_are_started_again_before_their_run_was_under_way_do_not_resume_an_earlier_one(join):
    join("earlier", num_restarts=0)[1].set()
    assert join("this", num_restarts=0)[0] == "restart"
    assert join("this", num_restarts=1)[0] == "restart"


def test_launches_of_one_name_do_not_resume_the_run_of_one_another(join):
    join("none", num_restarts=0)[1].set()
    assert join("none", num_restarts=0)[0] == "restart"
    assert join("none", num_restarts=1)[0] == "restart"


def test_another_rank_than_the_first_moves_nothing_aside(join):
    assert join("this", num_restarts=0, rank=1)[0] == "resume"
