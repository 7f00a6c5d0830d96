"""Bare loops and groups side by side: each figure is taken."""

import json
import sys

import pytest
import warm
from pages import PAGES, ROOT, commands


def test_the_command_of_the_page_measures_every_column(tmp_path):
    pytest.importorskip("pyspiel")
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_openspiel.py" in c)
    file = tmp_path / "openspiel.json"
    games = ("leduc_poker", "goofspiel", "catch")
    short = ["--rounds", "1", "--seconds", "0.05", "--games", *games, "--json", str(file)]
    done = warm.run(
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
    assert "| catch |" in done.stdout
