"""The comparison with other trainers, with stand-ins for them: to install them is for a machine of its own."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import bench_peers
import pytest
import stand_in_peer
from faults import processes
from pages import PAGES, ROOT, commands
from peers import own, puffer, sample_factory, sb3
from peers.options import Options
from peers.trainer import Report, Result, ReturnReport, result_of
from process_session import Ran
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sf.tools.commands import cli

COMMAND = "scripts/bench_peers.py --env doom_battle"
SMALL = ["--env", "doom_basic", "--rounds", "1", "--num_workers", "1", "--num_envs_per_worker", "2"]
SMALL += ["--rollout", "8", "--batch_size", "16", "--warm_up_seconds", "30"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "scripts"), str(ROOT)])}
OWN_FLAGS = "--own_flags=--learner_threads 1 --train_for_env_steps 2400"


@pytest.fixture
def peers_dir(tmp_path):
    """Where the virtual environments of the stand-ins are: interpreters that have all that pip is asked for."""
    for peer in ("sample-factory-2.1.1", "stable-baselines3-2.9.2"):
        python = tmp_path / "peers" / peer / "bin" / "python"
        python.parent.mkdir(parents=True)
        (tmp_path / "peers" / peer / "lib" / "python3" / "site-packages").mkdir(parents=True)
        python.write_text(
            f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
            f'if [ "$2" = pip ]; then exit 0; fi\nexec {sys.executable} {stand_in_peer.__file__} "$@"\n'
        )
        python.chmod(0o755)
    return tmp_path / "peers"


@pytest.mark.long
def test_the_command_of_the_page_compares_all_trainers_in_turn(peers_dir, tmp_path):
    (command,) = (c for page in PAGES for c in commands(page) if c[1:4] == COMMAND.split())
    words = [*command[2:], *SMALL, OWN_FLAGS, "--env", "atari_pong", "--seconds", "30"]
    words += ["--peers", "sample_factory", "stable_baselines3"]
    words += ["--peers_dir", str(peers_dir), "--json", str(tmp_path / "peers.json")]
    script = [sys.executable, str(ROOT / "scripts" / "bench_peers.py")]
    done = subprocess.run([*script, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "peers.json").read_text())
    names = ["sample_factory", "stable_baselines3", "own"]
    assert [*record["rounds"][0]] == [*record["settings"]] == [*record["versions"]] == names
    (results,) = record["rounds"]
    for peer in names[:-1]:
        assert results[peer]["steady_frames_per_second"] == pytest.approx(stand_in_peer.FRAMES_PER_SECOND, rel=0.01)
        assert results[peer]["env_frames"] == stand_in_peer.FRAMES[-1]
        assert results[peer]["left_behind"] == results["own"]["left_behind"] == 0
        rate = results["own"]["steady_frames_per_second"]
        assert record["ratios"][peer] == [rate / results[peer]["steady_frames_per_second"]]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert " sample-factory==2.1.1 " in asked[0]
    assert " torch==" in asked[0]
    assert len(asked) == 4
    flags = {"env": "atari_pong", "rollout": "8", "device": "cpu"}
    assert record["settings"]["sample_factory"].items() >= flags.items()
    assert record["settings"]["stable_baselines3"]["env_id"] == "PongNoFrameskip-v4"
    assert record["command"][1:] == words


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"env": "CartPole-v0"}, "env is CartPole-v0"),
        ({"peers": ()}, "peers is empty"),
        ({"peers": ("sample_factory", "sample_factory")}, "peers is"),
        ({"warm_up_seconds": 5.0}, "warm_up_seconds"),
        ({"env": "doom_basic", "to_return": 1.0}, "to_return"),
        ({"env": "CartPole-v1", "peers": ("pufferlib",), "to_return": 100.0}, "to_return"),
    ],
)
def test_a_wrong_flag_is_refused(flags, name):
    with pytest.raises(ValueError, match=name):
        Options(**flags)


@pytest.mark.parametrize("program", [sb3.PROGRAM, sb3.EVALUATE, puffer.PROGRAM], ids=lambda program: program.stem)
def test_the_programs_of_peers_need_nothing_of_this_project(program):
    imported = [line.split()[1] for line in program.read_text().splitlines() if line.startswith(("from ", "import "))]
    assert not {"peers", "sf", "learning"} & {module.partition(".")[0] for module in imported}


def test_of_sample_factory_reports_count_from_the_first_batch_on():
    line = "[2026-01-01 00:00:{:02},500][7] Fps is (10 sec: 9.9). Total num frames: {}. Throughput: 0: 9.9."
    log = "\n".join(["[2026-01-01 00:00:01,000][7] Starting", *(line.format(5 * i, 2048 * i) for i in range(4))])
    reports = sample_factory.reports_of(log)
    assert [report.frames for report in reports] == [2048, 4096, 6144]
    assert [report.at - reports[0].at for report in reports] == [0, 5, 10]


def test_the_rate_is_the_slope_of_what_was_reported_before_the_stop():
    reports = [Report(100.0 + second, 50 * second) for second in range(1, 8)]
    result = result_of("a trainer", "", [*reports, Report(110.0, 10**6)], [], None, Ran(90.0, 109.0, 2))
    assert result.steady_frames_per_second == pytest.approx(50)
    assert (result.env_frames, result.seconds, result.left_behind) == (350, 17.0, 2)
    assert result.seconds_to_return is None


def test_a_short_run_is_a_result_only_where_a_return_was_asked_for():
    result = result_of("a trainer", "", [], [ReturnReport(95.0, 60, 5.0)], 5.0, Ran(90.0, 96.0, 0))
    assert (result.steady_frames_per_second, result.env_frames, result.seconds) == (None, 60, 5.0)
    assert result.seconds_to_return == 5.0
    result = result_of("a trainer", "", [Report(95.0, 60)], [], 5.0, Ran(90.0, 109.0, 0))
    assert (result.steady_frames_per_second, result.mean_return, result.seconds_to_return) == (None, None, None)
    for reports, goal, status in (([Report(95.0, 60)], None, None), ([], 5.0, None), ([Report(95.0, 60)], 5.0, 1)):
        with pytest.raises(SystemExit, match="No such game"):
            result_of("a trainer", "No such game", reports, [], goal, Ran(90.0, 109.0, 0, status))


def test_returns_of_sample_factory_are_of_whole_games_and_of_100_episodes(tmp_path):
    folder = tmp_path / "run" / ".summary" / "0"
    returns = sample_factory.Returns(folder, *sample_factory.RETURNS["atari"])
    assert returns.read() == []
    writer = EventFileWriter(str(folder))
    for at, frames, mean_return in ((10.0, 5_000, 9.0), (15.0, 30_000, 2.0), (20.0, 60_000, 4.0)):
        of_game, length = sample_factory.RETURNS["atari"]
        for tag, value in ((of_game, mean_return), (length, 250.0), ("reward/reward", 0.5), ("perf/_fps", 99.0)):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(wall_time=at, step=frames, summary=summary))
    writer.close()
    assert returns.read() == [ReturnReport(15.0, 30_000, 2.0), ReturnReport(20.0, 60_000, 4.0)]
    assert returns.have_reached(4.0)
    assert not returns.have_reached(9.0)


def test_of_this_project_the_last_record_is_the_one_that_reached_the_return(tmp_path):
    records = [
        {"env_frames": 400, "mean_return": 4.0},
        {"env_frames": 800, "mean_return": 6.0, "episodes_in_mean": 100},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(tmp_path / "metrics.jsonl", (107.0, 107.0))
    for stopped_by, to_return in (("stop_at_return", (7.0, 800)), (None, (None, None))):
        summary = {"steady_env_frames_per_second": 300.0, "env_frames": 900, "stopped_by": stopped_by}
        (tmp_path / "summary.json").write_text(json.dumps(summary))
        result = own.result_in(tmp_path, Ran(100.0, 110.0, 0), has_goal=True)
        assert (result.steady_frames_per_second, result.env_frames, result.seconds) == (300.0, 800, 7.0)
        assert (result.seconds_to_return, result.frames_to_return) == to_return
        assert result.mean_return == 6.0


def to_return(seconds):
    return Result(900.0, 9_000, 200.0, 0, 3.25, seconds)


@pytest.mark.parametrize(
    ("rounds", "ratios", "middle"),
    [
        (((150.0, 100.0), (150.0, None), (150.0, None)), [1.5, 0.0, 0.0], 0.0),
        (((150.0, 100.0), (None, None)), [1.5, None], 1.5),
        (((150.0, 100.0), (None, 100.0)), [1.5, math.inf], 1.5),
        (((150.0, None), (None, 100.0)), [0.0, math.inf], 0.0),
    ],
)
def test_a_round_in_which_one_of_two_did_not_reach_the_return_counts_for_the_other(rounds, ratios, middle):
    results = [{"sb3": to_return(peer), "own": to_return(own)} for peer, own in rounds]
    assert bench_peers.ratios_of(results, is_to_return=True) == {"sb3": ratios}
    assert bench_peers.median_of(ratios) == middle
    json.dumps([bench_peers.as_json(value) for value in ratios], allow_nan=False)


def test_this_project_trains_for_its_time_though_the_preset_ends_sooner(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(own, "run_bounded", lambda command, *_: asked.append(command) or Ran(0.0, 1.0, 0, 1))
    (tmp_path / "run.log").touch()
    for own_flags in ("", "--train_for_env_steps 2400"):
        with pytest.raises(SystemExit, match="failed"):
            own.ThisProject().measure_speed(Options(env="doom_basic", own_flags=own_flags), tmp_path, "run")
    runs = [cli.parse(command[3:]).run for command in asked]
    assert [run.ends_by_steps for run in runs] == [False, True]


def test_a_program_is_interrupted_as_soon_as_it_is_done(tmp_path):
    # In a process of its own: all descendants of the one that calls it are killed.
    code = """if True:
        from pathlib import Path
        from process_session import run_bounded
        asked = []
        program = ["sleep", "1000"]
        ran = run_bounded(program, Path("log"), 900.0, lambda: asked.append(1) or len(asked) == 2)
        assert len(asked) == 2 and ran.left_behind == 0
    """
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, check=True, timeout=60)


def test_a_program_ends_with_the_one_that_runs_it(tmp_path):
    code = """if True:
        from pathlib import Path
        from process_session import run_bounded
        run_bounded(["sh", "-c", "echo $$ > started; exec sleep 1000"], Path("log"), 900.0)
    """
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT) as runner:
        started = tmp_path / "started"
        while not (started.exists() and started.read_text().strip()):
            assert runner.poll() is None
            time.sleep(0.1)  # it is another program, which cannot say it
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(60) == 128 + signal.SIGTERM
    assert not processes.is_alive(int(started.read_text()))
