"""The speed of the strategy games: every figure is taken, and the share is of the same settings."""

import json
import sys

import pytest
import warm
from pages import ROOT


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_figure_is_taken(tmp_path):
    pytest.importorskip("numba")
    file = tmp_path / "rts.json"
    short = ["--rounds", "1", "--seconds", "0.3", "--envs_per_worker", "4", "8", "--json", str(file)]
    done = warm.run(
        [sys.executable, str(ROOT / "scripts" / "bench_rts.py"), *short],
        capture_output=True,
        text=True,
        timeout=390,
        check=True,
    )
    found = json.loads(file.read_text())
    assert list(found["maps"]) == ["20 x 20", "20 x 20, more units", "40 x 40", "80 x 80"]
    assert all(row["ticks_per_second"] > 0 for rows in found["maps"].values() for row in rows)
    assert found["ticks_per_second"] == found["maps"]["20 x 20"][0]["ticks_per_second"]
    assert found["units"] >= 20
    assert list(found["sampler"]) == ["4", "8"]
    for rates in found["sampler"].values():
        assert rates["share"] == round(rates["sampler"][0] / rates["simulation"][0], 3) > 0
    assert found["sampler_share"] == found["sampler"]["4"]["share"]
    assert "| 80 x 80 | " in done.stdout
