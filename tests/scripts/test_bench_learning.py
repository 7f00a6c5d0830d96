"""The bench of what trainers learn: its table, its queue and its file of results, with stand-ins for the trainers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bench_learning
import numpy as np
import pytest
import stand_in_trainer
import warm
import yaml
from bench_learning import Options
from gymnasium.utils.env_checker import check_env
from learning import tasks
from learning.results import Results
from pages import ROOT
from peers import own, sample_factory, sb3, trainer, trees
from peers.own import Own
from peers.sample_factory import SampleFactory
from peers.sb3 import StableBaselines3
from peers.trainer import Order
from process_session import Ran
from stand_in_trainer import StandIn

from sf import envs
from sf.storage import run_lock
from sf.tools.commands import cli

TABLE = tasks.read(tasks.TABLE)
STRATEGY_GAMES = tasks.read(tasks.TABLE.with_name("strategy_games.yaml"))


def bench(monkeypatch, capsys, tmp_path, trainers, *words):
    """Status and output of the command, with these trainers."""
    told = ["bench_learning.py", "--results", str(tmp_path / "results"), "--lock", str(tmp_path / "lock"), *words]
    monkeypatch.setattr(sys, "argv", told)
    monkeypatch.setattr(bench_learning, "_trainers", lambda options: trainers)
    monkeypatch.setattr(bench_learning, "_report", lambda *args: None)
    monkeypatch.setattr(signal, "signal", lambda *args: None)
    with pytest.raises(SystemExit) as end:
        bench_learning.main()
    return end.value.code or 0, capsys.readouterr().out


def records(tmp_path):
    return [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]


def test_trainers_take_turns_for_each_seed_and_only_what_is_missing_is_made(monkeypatch, capsys, tmp_path):
    first, second = StandIn("first"), StandIn("second", refuses=("Acrobot-v1",))
    words = ["--tasks", "CartPole-v1", "Acrobot-v1", "--seeds", "1", "2"]
    status, said = bench(monkeypatch, capsys, tmp_path, [first, second], *words)
    assert status == 0
    order = [(each["task"], each["seed"], each["trainer"]) for each in records(tmp_path)]
    cartpole = [("CartPole-v1", seed, name) for seed in (1, 2) for name in ("first", "second")]
    assert order == [*cartpole, ("Acrobot-v1", 1, "first"), ("Acrobot-v1", 2, "first")]
    assert "Acrobot-v1: without second (second has no Acrobot-v1)" in said
    record = records(tmp_path)[0]
    assert (record["frames"], record["trained_frames"], record["at_least"]) == (150_000, 150_012, 490)
    assert record["stochastic"] == 101.0
    assert record.keys() >= {"machine", "versions", "commit", "settings", "deterministic", "seconds", "at"}
    first.made.clear()
    words = ["--tasks", "CartPole-v1", "--seeds"]
    bench(monkeypatch, capsys, tmp_path, [first], *words, "1", "2", "3")
    bench(monkeypatch, capsys, tmp_path, [first], *words, "1", "--frames", "5000")
    for _ in range(2):
        bench(monkeypatch, capsys, tmp_path, [first], *words, "1", "--episodes", "7")
    assert [seed for _, seed in first.made] == [3, 1, 1]
    assert len(list(tmp_path.glob("results/runs/first/CartPole-v1_150000_seed_1_*"))) == 2  # a folder for each


def test_a_run_in_an_environment_that_has_changed_is_made_again(monkeypatch, capsys, tmp_path):
    (tmp_path / "corridor.py").write_text("LENGTH = 20")
    monkeypatch.setattr(tasks, "ENVIRONMENTS", tmp_path)
    table = tmp_path / "tasks.yaml"
    table.write_text("corridor: {env: 'corridor:Corridor', frames: 100}")
    trainer = StandIn("first")
    words = ["--table", str(table), "--seeds", "1"]
    for _ in range(2):
        bench(monkeypatch, capsys, tmp_path, [trainer], *words)
    assert len(trainer.made) == 1
    (tmp_path / "corridor.py").write_text("LENGTH = 5")
    bench(monkeypatch, capsys, tmp_path, [trainer], *words)
    assert len(trainer.made) == 2


def test_states_and_flags_of_this_project_are_trainers_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = Options(trainers=("own",), own_flags=("", "optimizer=muon"), results=tmp_path)
    plain, muon = bench_learning._trainers(options)
    assert (plain.commit, plain.name + " optimizer=muon") == (muon.commit, muon.name)
    order = Order(TABLE["CartPole-v1"], 100, 1, 1, "cpu")
    assert plain.settings(order) != muon.settings(order)


def test_a_run_that_fails_is_recorded_and_made_again_only_when_asked(monkeypatch, capsys, tmp_path):
    words = ["--tasks", "CartPole-v1", "--seeds", "1"]
    failing, other = StandIn("failing", fails=True), StandIn("other")
    absent = StandIn("absent", cannot_be_installed=True)
    status, said = bench(monkeypatch, capsys, tmp_path, [failing, other, absent], *words)
    assert status == 1
    assert said.count("CartPole-v1: without absent (pip failed)") == 1
    assert [(each["state"], each.get("why")) for each in records(tmp_path)] == [
        ("failed", "no memory left"),
        ("finished", None),
    ]
    status, _ = bench(monkeypatch, capsys, tmp_path, [failing, other], *words)
    assert (status, len(failing.made)) == (1, 1)
    fixed = StandIn("failing")
    status, _ = bench(monkeypatch, capsys, tmp_path, [fixed, other], *words, "--retry")
    assert (status, len(fixed.made), len(other.made)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--tasks", "CartPole"], "did you mean CartPole-v1?"),
        (["--own", "--exec=x"], "own"),
        (["--seeds", "1", "1"], "seeds is 1 1"),
        (["--table", "/nowhere/tasks.yaml"], "/nowhere/tasks.yaml"),
        (["--report"], "results.jsonl"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(words, named, monkeypatch, capsys, tmp_path):
    told = ["bench_learning.py", "--results", str(tmp_path), "--lock", str(tmp_path / "lock"), *words]
    monkeypatch.setattr(sys, "argv", told)
    monkeypatch.setattr(signal, "signal", lambda *args: None)
    with pytest.raises(SystemExit) as end:
        bench_learning.main()
    error = capsys.readouterr().err
    assert end.value.code == 2
    assert named in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("held", ["lock", "results"])
def test_a_second_bench_of_the_machine_or_of_the_results_is_refused(held, monkeypatch, capsys, tmp_path):
    with run_lock.held(tmp_path / held):
        status, _ = bench(monkeypatch, capsys, tmp_path, [StandIn("first")], "--tasks", "CartPole-v1", "--seeds", "1")
    assert status == 2
    assert not (tmp_path / "results" / "results.jsonl").exists()


def test_the_last_line_may_be_unfinished_and_no_other_may_be_broken(tmp_path):
    path = tmp_path / "results.jsonl"
    names = ("trainer", "title", "task", "frames", "settings", "state")
    record = dict.fromkeys(names, "x")
    results = Results(path)
    for seed in (1, 2):
        results.append({**record, "seed": seed, "why": float("nan")})
    with path.open("ab") as file:
        file.write(b'{"trainer": "fir')
    results = Results(path)
    assert len(results.records) == 2
    results.append({**record, "seed": 3})
    assert [each["seed"] for each in Results(path).latest().values()] == [1, 2, 3]
    path.write_bytes(b"no json\n" + path.read_bytes())
    with pytest.raises(ValueError, match="line 1"):
        Results(path)


def test_a_bench_that_is_interrupted_leaves_no_process_and_goes_on(tmp_path):
    words = [sys.executable, "-m", stand_in_trainer.__name__, "--results", str(tmp_path)]
    words += ["--lock", str(tmp_path / "lock"), "--tasks", "CartPole-v1", "--seeds", "1"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests" / "support")])
    with warm.Popen(  # as a module, it is started without fork servers, which would be descendants
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as program:
        while not list(tmp_path.glob("runs/wait/CartPole-v1_150000_seed_1_*/started")):
            assert program.poll() is None, program.stderr.read()
            time.sleep(0.1)  # it is another program, which cannot say it
        family = descendants(program.pid)
        program.send_signal(signal.SIGINT)
        said, error = program.communicate(timeout=60)
    assert program.returncode == 130, error
    assert "stopped with 1 of 3 runs left; to go on: python " in said
    assert error == ""
    assert len(family) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in family)
    results = Results(tmp_path / "results.jsonl")
    steady, failed = results.records
    assert (steady["trainer"], steady["state"]) == ("steady", "finished")
    assert (failed["trainer"], failed["why"]) == ("failing", "status 1: no memory left (train.log)")


def descendants(pid):
    children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [each for child in children for each in (child, *descendants(child))]


def test_every_row_names_environments_that_the_trainers_know(tmp_path):
    peers = {"stable_baselines3": StableBaselines3(tmp_path), "sample_factory": SampleFactory(tmp_path)}
    this_project = Own(trees.tree_of("tree", tmp_path))
    for task in [*TABLE.values(), *STRATEGY_GAMES.values()]:
        for name, peer in peers.items():
            assert (peer.refusal_of(task) is None) == (name in task.peers)
            if name in task.peers:
                settings = peer.settings(Order(task, 4_000, 1, 10, "cpu"))
                assert json.loads(json.dumps(settings)) == settings
        why = this_project.refusal_of(task)
        assert why is None or "install" in why or "cannot be imported" in why
        assert task.at_least is None or task.normalised(task.at_least) == 1.0
        assert task.random is None or task.normalised(task.random) == 0.0


def test_strategy_games_are_trained_with_settings_that_there_are():
    pytest.importorskip("numba")
    for task in STRATEGY_GAMES.values():
        config = cli.parse(cli.arguments({"env": task.env, "train_for_env_frames": task.frames, **task.flags}))
        assert bool(config.run.anneal) == task.name.endswith("_curriculum")
        assert envs.describe(task.env, config.environment).num_agents == 1


def test_a_commit_is_checked_out_beside_the_working_tree(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path / "clone"), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "clone")], check=True)
    module = tmp_path / "clone" / "sf" / "__main__.py"
    module.parent.mkdir()
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "nothing yet"], check=True)
    for text in ("first", "second"):
        module.write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", text], check=True)
    monkeypatch.setattr(trees, "REPOSITORY", tmp_path / "clone")
    with pytest.raises(ValueError, match="HEAD~2"):
        trees.tree_of("HEAD~2", tmp_path / "trees")
    tree, earlier = (trees.tree_of(name, tmp_path / "trees") for name in ("tree", "HEAD~1"))
    assert tree.commit == trees.tree_of("HEAD", tmp_path).commit != earlier.commit
    for _ in range(2):  # the second time it is there
        earlier.make()
        assert (earlier.folder / "sf" / "__main__.py").read_text() == "first"
    tree.require_unchanged()
    (tmp_path / "clone" / "README").write_text("beside what trains")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "third"], check=True)
    tree.require_unchanged()
    (tmp_path / "clone" / "sf" / "new.py").write_text("new")
    with_new = trees.state_of_working_tree()
    with pytest.raises(ValueError, match="working tree"):
        tree.require_unchanged()
    module.write_text("third")
    assert len({tree.commit, with_new, trees.state_of_working_tree()}) == 3


def test_a_program_that_makes_no_progress_is_stopped(monkeypatch):
    now, frames = [0.0], [0]
    monkeypatch.setattr(trainer.time, "monotonic", lambda: now[0])
    stall = trainer.Stall(lambda: frames[0])
    for at, count, is_stalled in ((0, 0, False), (600, 0, False), (601, 0, True), (602, 8, False), (1203, 8, True)):
        now[0], frames[0] = at, count
        assert stall() == is_stalled


@pytest.fixture
def programs(monkeypatch):
    """Instead of programs: their commands, and what each writes to its log."""
    asked, logs = [], {}

    def run(command, log_file, variables=None, **_):
        asked.append([*(f"{name}={value}" for name, value in (variables or {}).items()), *map(str, command)])
        log_file.write_text(logs[log_file.name])
        return Ran(100.0, 130.0, 0, 0)

    for module in (sb3, sample_factory):
        monkeypatch.setattr(module, "run_to_end", run)
    return asked, logs


def test_stable_baselines3_trains_for_the_frames_and_plays_with_other_seeds(programs, tmp_path):
    asked, logs = programs
    said = [(110.0, 256, True, None), (112.0, 700, False, 20.0), (120.0, 1024, True, 20.5)]
    names = ("at", "steps", "are_trained_on", "mean_return")
    logs["train.log"] = "\n".join(json.dumps(dict(zip(names, values, strict=True))) for values in said)
    logs["play.log"] = 'a warning\n{"mean_returns": {"stochastic": 18.0, "deterministic": 21.0}}\n'
    trainer_there = StableBaselines3(tmp_path / "peers")
    outcome = trainer_there.learn(Order(TABLE["atari_pong"], 4_001, 3, 10, "cpu"), tmp_path)
    assert outcome == trainer.Outcome(4_096, 30.0, 0, 20.5, 18.0, 21.0, 2_800, 12.0)
    task, played = json.loads(asked[0][2]), json.loads(asked[1][3])
    assert (task["n_timesteps"], task["seed"], task["to_return"], task["save_to"]) == (1_001, 3, 19, str(tmp_path))
    assert json.loads(asked[1][2]) == task
    assert played == {"episodes": 10, "seed": 1_000_003}
    with pytest.raises(trainer.RunError, match="4,096"):
        trainer_there.learn(Order(TABLE["atari_pong"], 5_000, 3, 10, "cpu"), tmp_path)


def run_warm(command, log_file, tree):
    """As `run_to_end`, but that it ends no descendants, among which tests have others."""
    started = time.time()
    with log_file.open("w") as log:
        warm.run(command, cwd=tree, stdout=log, stderr=subprocess.STDOUT, timeout=300, check=True)
    return Ran(started, time.time(), 0, 0)


@pytest.mark.long
def test_this_project_trains_and_is_evaluated(tmp_path, monkeypatch, capsys):
    words = ["--results", str(tmp_path), "--lock", str(tmp_path / "lock"), "--trainers", "own", "--seeds", "1"]
    words += ["--tasks", "CartPole-v1", "--frames", "6000", "--episodes", "4", "--table", str(tmp_path / "tasks.yaml")]
    words += ["--own_flags", "layer_norm=true encoder_mlp_layers=16 8"]
    row = {"frames": 150_000, "at_least": 10.0, "random": 0.0}
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump({"CartPole-v1": row}))
    monkeypatch.setattr(sys, "argv", ["bench_learning.py", *words])
    monkeypatch.setattr(signal, "signal", lambda *args: None)
    monkeypatch.setattr(own, "run_to_end", run_warm)
    with pytest.raises(SystemExit) as end:
        bench_learning.main()
    assert not end.value.code, capsys.readouterr().out
    (record,) = Results(tmp_path / "results.jsonl").records
    assert record["state"] == "finished", record
    (config,) = tmp_path.glob("runs/*/*/run/config.yaml")
    assert yaml.safe_load(config.read_text())["encoder_mlp_layers"] == [16, 8]
    assert record["frames"] == 6_000 <= record["trained_frames"]
    assert 9 <= record["stochastic"] <= 500
    assert 9 <= record["deterministic"] <= 500
    assert 0 <= record["frames_to_score"] <= record["trained_frames"]
    assert record["seconds_to_score"] <= record["seconds"] <= record["seconds_with_evaluation"]
    assert record["left_behind"] == 0
    assert record["trainer"] == f"own@{record['commit']} layer_norm=true encoder_mlp_layers=16 8"


@pytest.fixture
def environments_found(monkeypatch):
    monkeypatch.syspath_prepend(str(tasks.ENVIRONMENTS))


def play(env, choose, num_episodes):
    returns = []
    for seed in range(num_episodes):
        obs, _ = env.reset(seed=seed)
        returns.append(0.0)
        over = False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(choose(obs))
            returns[-1] += reward
            over = terminated or truncated
    return returns


@pytest.mark.usefixtures("environments_found")
def test_the_ball_is_reached_by_a_player_that_sees_it():
    from reach_camera import Reach  # noqa: PLC0415

    def towards_the_ball(picture):
        white, red = ((picture == color).all(axis=-1).nonzero() for color in ((255, 255, 255), (255, 0, 0)))
        if not len(red[0]):
            return np.zeros(2)  # it is covered
        away = np.array([red[1].mean() - white[1].mean(), red[0].mean() - white[0].mean()])
        return np.clip(away / 5, -1, 1)

    env = Reach()
    check_env(env, skip_render_check=True)
    assert -12 < np.mean(play(env, towards_the_ball, 20)) < -3
    assert np.mean(play(env, lambda picture: np.zeros(2), 20)) < -30


@pytest.mark.usefixtures("environments_found")
def test_the_maze_asks_for_the_sign_at_its_start():
    from t_maze import TMaze  # noqa: PLC0415

    signs = []

    def with_memory(obs):
        if obs[0]:
            signs.append(obs[0])
        return 0 if not obs[1] else (2 if signs[-1] > 0 else 1)

    env = TMaze()
    check_env(env, skip_render_check=True)
    assert play(env, with_memory, 30) == [1.0] * 30
    without = play(env, lambda obs: 2 if obs[1] else 0, 200)
    assert set(without) == {1.0, -1.0}
    assert abs(np.mean(without)) < 0.3
