"""A policy that lies among the files of a run or a search is no way around the question whether its code is trusted."""

import dataclasses
from types import SimpleNamespace

import pytest
from untrained import untrained

from sf.config import Config
from sf.league.players.entrants import _file_name
from sf.league.players.snapshots import kept_at
from sf.league.players.worker import _Players
from sf.run.planning import make_plan
from sf.storage import checkpoint
from sf.tools.psro import record
from sf.tools.psro.exploit import EXPLOITED, pin
from sf.tools.psro.search import Search

NET = "theirs:Net"


@pytest.fixture(autouse=True)
def code(tmp_path, monkeypatch):
    """A module that nobody vouches for."""
    (tmp_path / "theirs.py").write_text("raise AssertionError('it has run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def plant(path, **flags):
    saved = untrained("toy_match_rps")
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {**saved.state["config"], **flags}
    checkpoint.write(path, dataclasses.replace(saved, state={**saved.state, "config": config}))


@pytest.mark.parametrize("flag", ["encoder", "model"])
def test_a_snapshot_in_the_league_of_a_run(tmp_path, flag):
    plant(tmp_path / "policy_00_000000000064.safetensors", **{flag: NET})
    players = object.__new__(_Players)
    players._args = SimpleNamespace(
        directory=tmp_path, opponents={}, model=Config().model, trusts=False, device="cpu", seed=0, seed_key=(0, 0)
    )
    with pytest.raises(ValueError, match=f"names {flag} '{NET}'.* --trust true"):
        players._load("policy_00_000000000064", seat=0, turn=1)


def test_a_player_of_a_run_whose_copy_names_no_code(tmp_path):
    plant(tmp_path / "theirs.safetensors", encoder=NET)
    run = tmp_path / "run"
    plant(kept_at(run, _file_name(str(tmp_path / "theirs.safetensors"))))
    flags = {"env": "toy_match_rps", "past_share": 0.5, "players": (str(tmp_path / "theirs.safetensors"),)}
    with pytest.raises(ValueError, match=f"names encoder '{NET}'.* --trust true"):
        make_plan(Config().replace(**flags, train_dir=str(tmp_path), experiment="run"))


def test_the_policy_that_a_response_is_to(tmp_path):
    pin(tmp_path, {"run": "a"}, untrained("toy_match_rps"))
    plant(tmp_path / EXPLOITED, encoder=NET)
    with pytest.raises(ValueError, match=f"names encoder '{NET}'.* --trust true"):
        pin(tmp_path, {"run": "a"}, untrained("toy_match_rps"))
    assert pin(tmp_path, {"run": "a"}, untrained("toy_match_rps"), is_trusted=True).state["config"]["encoder"] == NET


def test_a_policy_of_a_search(tmp_path):
    plant(tmp_path / "policies" / "policy_001.safetensors", encoder=NET)
    path = tmp_path / record.NAME
    record.append(
        path,
        record.Iteration(
            iteration=0,
            player="policy_001",
            path="policies/policy_001.safetensors",
            trained_against={},
            payoffs=[],
            mixture={"policy_001": 0.0},
            exploitability=None,
            env_steps=1,
            seconds=1.0,
            settings={},
        ),
    )
    with pytest.raises(ValueError, match=f"names encoder '{NET}'.* --trust true"):
        Search(tmp_path, Config(), judge=None, solver="nash", is_warm=False, settings={})
