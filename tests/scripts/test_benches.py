"""The benches of parts: each figure is taken, and an earlier result is not lost."""

import json
import sys
from itertools import combinations

import bench_ratings
import bench_rts
import fault_campaign
import numpy as np
import pytest
import rank_campaign
import warm
from pages import PAGES, ROOT, commands

from sf.league.record import Match

KINDS = {"pipes", "faster_fifo"}


@pytest.mark.parametrize("script", [fault_campaign, rank_campaign])
def test_a_campaign_leaves_the_file_of_an_earlier_one_and_refuses_one_that_cannot_be_written(
    script, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "outcomes.json"
    path.write_text("{}")
    for file in (tmp_path, path):
        monkeypatch.setattr(sys, "argv", [script.__name__, "--json", str(file)])
        with pytest.raises(SystemExit) as end:
            script.main()
        assert end.value.code == 2
        (sentence,) = capsys.readouterr().err.strip().splitlines()
        assert "--json" in sentence
    assert path.read_text() == "{}"


@pytest.mark.long
def test_the_command_of_the_page_measures_both_kinds(tmp_path):
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_queues.py" in c)
    file = tmp_path / "queues.json"
    short = ["--rounds", "1", "--seconds", "0.1", "--training-seconds", "0", "--kills", "20", "--json", str(file)]
    warm.run(
        [sys.executable, str(ROOT / "scripts" / "bench_queues.py"), *command[2:], *short],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(file.read_text())
    assert set(found["figures"]) == {
        "round trip on one core, us",
        "round trip on two cores, us",
        *(f"{num} clients, answers/s" for num in (1, 8, 72)),
    }
    for by_kind in found["figures"].values():
        assert set(by_kind) == KINDS
        assert all(len(values) == 1 and values[0] > 0 for values in by_kind.values())
    for kills in found["kills"].values():
        assert kills["deaths"] == 20
        assert kills["locked_unforeseen"] == 0
    assert found["kills"]["pipes"]["locked"] == 0


def test_every_column_of_openspiel_is_measured(tmp_path):
    pytest.importorskip("pyspiel")
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_openspiel.py" in c)
    file = tmp_path / "openspiel.json"
    games = ("leduc_poker", "goofspiel", "catch")
    short = ["--rounds", "1", "--seconds", "0.05", "--games", *games, "--json", str(file)]
    warm.run(
        [sys.executable, str(ROOT / "scripts" / "bench_openspiel.py"), *command[2:], *short],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    figures = json.loads(file.read_text())["figures"]
    assert tuple(figures) == games
    for by_column in figures.values():
        names = ("lists", "buffers", "group")
        assert list(by_column) == [name + drawing for name in names for drawing in ("", " and drawing")]
        assert all(len(values) == 1 and values[0] > 0 for values in by_column.values())


@pytest.mark.long
def test_every_figure_of_the_strategy_games_is_taken(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numba")
    file = tmp_path / "rts.json"
    short = ["--rounds", "1", "--seconds", "0.1", "--envs_per_worker", "4", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["bench_rts.py", *short])
    monkeypatch.setattr(bench_rts, "MAPS", dict(list(bench_rts.MAPS.items())[:2]))
    bench_rts.main()
    found = json.loads(file.read_text())
    assert list(found["maps"]) == ["20 x 20", "20 x 20, more units"]
    assert all(row["ticks_per_second"] > 0 for rows in found["maps"].values() for row in rows)
    assert found["ticks_per_second"] == found["maps"]["20 x 20"][0]["ticks_per_second"]
    assert found["units"] >= 20
    ((num, rates),) = found["sampler"].items()
    assert num == "4"
    assert found["sampler_share"] == rates["share"]
    assert rates["share"] == round(rates["sampler"][0] / rates["simulation"][0], 3) > 0


def test_a_tournament_has_every_pair_as_often():
    true, rows = bench_ratings.tournament(np.random.default_rng(0), num_players=4, num_matches=3)
    assert true.keys() == {"1", "2", "3"}
    pairs = [tuple(sorted(row.players)) for row in rows if isinstance(row, Match)]
    assert sorted(pairs) == sorted([*combinations("0123", 2)] * 3)
