"""Both kinds of queues side by side: each figure is taken, and kills are counted."""

import json
import subprocess
import sys

from pages import PAGES, ROOT, commands

KINDS = {"pipes", "faster_fifo"}


def test_the_command_of_the_page_measures_both_kinds(tmp_path):
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_queues.py" in c)
    file = tmp_path / "queues.json"
    short = ["--rounds", "1", "--seconds", "0.1", "--training-seconds", "0", "--kills", "20", "--json", str(file)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "bench_queues.py"), *command[2:], *short],
        capture_output=True,
        text=True,
        timeout=100,
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
