"""Both kinds of queues side by side: each figure is taken, and kills are counted."""

import json
import os
import sys
from pathlib import Path

import bench_queues
import pytest
import warm
from pages import PAGES, ROOT, commands

KINDS = {"pipes", "faster_fifo"}


@pytest.mark.long
def test_the_command_of_the_page_measures_both_kinds(tmp_path):
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_queues.py" in c)
    file = tmp_path / "queues.json"
    short = ["--rounds", "1", "--seconds", "0.1", "--training-seconds", "0", "--kills", "20", "--json", str(file)]
    done = warm.run(
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
    assert "| deaths | 20 | 20 |" in done.stdout


def test_a_client_that_dies_ends_the_measurement_and_says_why(capfd):
    def die(counts, own):
        raise ValueError("the queue is broken")

    before = own_children()
    with pytest.raises(RuntimeError, match="has ended by itself"):
        bench_queues.rate([], [(die,)], None, seconds=0.1)
    assert "ValueError: the queue is broken" in capfd.readouterr().err
    assert own_children() <= before


def own_children():
    """Tests before this one may have left some, such as the tracker of shared memory."""
    return {*Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


def test_what_was_measured_is_in_the_file_after_each_round(tmp_path, monkeypatch):
    rounds = [1.0, 1.0, 2.0, 2.0]  # of both kinds of queues

    def measured(*_):
        if not rounds:
            raise RuntimeError("a round that fails")
        return rounds.pop(0)

    file = tmp_path / "queues.json"
    monkeypatch.setattr(bench_queues, "round_trip_us", lambda *_: 1.0)
    monkeypatch.setattr(bench_queues, "CLIENTS", (1,))
    monkeypatch.setattr(bench_queues, "answers_per_s", measured)
    monkeypatch.setattr(sys, "argv", ["bench_queues.py", "--training-seconds", "0", "--json", str(file)])
    with pytest.raises(RuntimeError, match="a round that fails"):
        bench_queues.main()
    found = json.loads(file.read_text())["figures"]["1 clients, answers/s"]
    assert found == {"pipes": [1.0, 2.0], "faster_fifo": [1.0, 2.0]}
