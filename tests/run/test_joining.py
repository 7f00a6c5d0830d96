"""How a trainer becomes one of several ranks."""

from __future__ import annotations

import pytest
from torch.distributed import HashStore

from sf.config import Config
from sf.ranks.place import Place
from sf.ranks.rendezvous import Rendezvous
from sf.run import joining
from sf.run.plan import make_plan


@pytest.fixture
def join(tmp_path, monkeypatch):
    """A function: how a rank of a launch treats the run that it finds, and its mark."""
    monkeypatch.setattr(joining, "meet", lambda *args: Rendezvous(HashStore(), "name", sees_disk_of_first=True))
    flags = {"env": "CartPole-v1", "train_dir": str(tmp_path), "restart_behavior": "restart", "num_workers": 1}
    config = Config().replace(**flags, device="cpu", rank_timeout_s=5.0)

    def of(launch, num_restarts, rank=0):
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", launch)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(num_restarts))
        plan = make_plan(config, Place(rank, 2, rank, 2, is_by_torchrun=True))
        with joining.joined(config, plan) as joined:
            return joined.config.run.restart_behavior, joined.mark

    return of


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
