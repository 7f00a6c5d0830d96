"""The comparison with Sample Factory, with a stand-in for it: one that is installed is for a machine of its own."""

import json
import subprocess
import sys

import pytest
import stand_in_peer
from pages import PAGES, ROOT, commands

SMALL = ["--env", "doom_basic", "--rounds", "1", "--num_workers", "1", "--num_envs_per_worker", "2"]
SMALL += ["--rollout", "8", "--batch_size", "16"]
OWN_FLAGS = "--own_flags=--learner_threads 1 --train_for_env_steps 320"


@pytest.fixture
def peers_dir(tmp_path):
    """Where the virtual environment of the stand-in is: an interpreter that has installed all that pip is asked for."""
    folder = tmp_path / "peers" / "sample-factory-2.1.1" / "bin"
    folder.mkdir(parents=True)
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'if [ "$2" = pip ]; then exit 0; fi\nexec {sys.executable} {stand_in_peer.__file__} "$@"\n'
    )
    python.chmod(0o755)
    return tmp_path / "peers"


@pytest.mark.long
def test_the_command_of_the_page_compares(peers_dir, tmp_path):
    (command,) = (c for page in PAGES for c in commands(page) if "scripts/bench_peers.py" in c)
    words = [*command[2:], *SMALL, OWN_FLAGS, "--peers_dir", str(peers_dir), "--json", str(tmp_path / "peers.json")]
    script = [sys.executable, str(ROOT / "scripts" / "bench_peers.py")]
    done = subprocess.run([*script, *words], capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "peers.json").read_text())
    (pair,), (ratio,) = record["rounds"], record["ratios"]
    peer, own = pair["sample_factory"], pair["own"]
    assert peer["steady_frames_per_second"] == pytest.approx(stand_in_peer.FRAMES_PER_SECOND, rel=0.01)
    assert peer["env_frames"] == stand_in_peer.FRAMES[-1]
    assert own["env_frames"] >= 4 * 320
    assert ratio == own["steady_frames_per_second"] / peer["steady_frames_per_second"]
    assert peer["left_behind"] == own["left_behind"] == 0
    assert f"| median | | | {record['median_ratio']:.2f} |" in done.stdout
    asked = (tmp_path / "asked").read_text().splitlines()
    assert "install --quiet sample-factory==2.1.1 torch==" in asked[0]
    assert len(asked) == 2
    assert record["sample_factory_config"].items() >= {"env": "doom_basic", "rollout": "8", "device": "cpu"}.items()
    assert record["command"][1:] == words
