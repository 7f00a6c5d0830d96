"""The commands that README and docs show are run, as they stand there and with flags behind them that make them small.

Of those that evaluate or measure, as many are run as it takes to have each flag and kind of environment among them.
Of those that train, each that brings two of these, and the modules that the pages show: the rest has tests of its own.
Those of pip and make are run by `test_installation`, those of scripts by the tests of tests/scripts, the algorithm in
one file by `test_tiny_appo`. `test_docs` sees to it that all of them parse.
"""

import dataclasses
import importlib
import itertools
import json
import math
import re
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import make_flags_page
import maps
import pytest
import warm
import yaml
from pages import PAGES, ROOT, blocks, commands
from typist import Typist

from sf.envs.libraries.packages import PACKAGES
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli
from sf.tools.psro.command import PsroFlags

COMMANDS = {shlex.join(command): command for page in PAGES for command in commands(page)}
PROGRAMS = make_flags_page.entry_points()
ROLLOUT = 8
NO_RUN = {"--help", "--check", "--tyro-print-completion"}  # flags of sf-train with which it trains nothing
MY_ENV = "import gymnasium as gym\n\n\ndef MyEnv():\n    return gym.make('CartPole-v1')\n"
OWN = {  # modules that pages speak of without showing them
    "my_envs": MY_ENV,
    "my_module": MY_ENV,
    "my_nets": "from sf.model.encoders.vectors import MlpEncoder as MyEncoder\n",
    "own_env": (ROOT / "docs" / "examples" / "own_env.py").read_text(),
}
SHOWN = {  # modules that begin with their names
    shown[1]: block
    for page in PAGES
    for block in blocks(page, "python")
    if (shown := re.match(r"# (\w+)\.py\n", block))
}


def train_commands():
    return [text for text, (program, *_) in COMMANDS.items() if program == "sf-train" and not NO_RUN & {*text.split()}]


def small(words, train_dir):
    """The words of a run's command, and behind them what makes it a matter of seconds."""
    config = cli.parse([*words, "--train_dir", str(train_dir)])
    num_policies = min(2, config.population.num_policies)
    flags = {
        "num_workers": 1,
        "num_envs_per_worker": config.sampler.num_groups_per_worker,
        "rollout": ROLLOUT,
        "batch_size": 2 * ROLLOUT,
        "num_policies": num_policies,
        "num_learners": 1,
        "encoder_conv_mlp_layers": 16,
        "rnn_size": 16,
        "learner_threads": 1,
        "device": "cpu",
        "train_dir": train_dir,
        "train_for_env_steps": 4 * 2 * ROLLOUT * num_policies,
        "train_for_seconds": 100,
        "doom_match_s": 2,
    }
    return [*words, *(word for name, value in flags.items() for word in (f"--{name}", str(value)))]


def covering(texts, least=1):
    """Few of the commands, each of which adds at least so many flags and kinds of environments to those before."""
    left = {text: features(text) for text in texts}
    missing = set().union(*left.values())
    chosen = []
    while left:
        best = max(left, key=lambda text: len(left[text] & missing))
        if len(left[best] & missing) < least:
            break
        missing -= left.pop(best)
        chosen.append(best)
    return sorted(chosen, key=list(texts).index)


def features(text):
    """Its program, its flags, the kind of its environment, and the kinds of files in it."""
    program, *words = COMMANDS[text]
    found = {program, *(Path(word).suffix for word in words)}
    for word, value in itertools.pairwise([*words, "--"]):
        if word == "--env":
            found.add("gymnasium" if value in gym.registry else re.split("[:_/-]", value)[0])
        elif word.startswith("--"):
            found.add(word)
    return found


def chosen_to_train():
    chosen = covering(train_commands(), least=2)
    shown = {f"--env {name}:": text for name in SHOWN for text in train_commands() if f"--env {name}:" in text}
    return [*chosen, *(text for text in shown.values() if text not in chosen)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the modules that pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr(sys, "path", list(sys.path))  # commands add the current folder
    for name in (*OWN, *SHOWN):  # another test may have imported one of that name
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, code in OWN.items():
        (tmp_path / f"{name}.py").write_text(code)
    for name, code in SHOWN.items():
        (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


def run(*command):
    """As in a shell."""
    done = warm.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def make_files_of_earlier_commands(text):
    """The reference pool that a command reads, made as the page makes it."""
    for name in re.findall(r"--reference(?:_ratings)? (\S+)", text):
        (earlier,) = (words for words in COMMANDS.values() if words[0] == "sf-league" and {"--json", name} <= {*words})
        run_here(*earlier, *FLAGS["sf-league"])


def run_here(program, *words):
    """The same, without a process of its own: that would import torch before all else."""
    module, function = PROGRAMS[program].split(":")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.setattr(sys, "argv", [program, *words])
        status = 0
        try:
            getattr(importlib.import_module(module), function)()
        except SystemExit as end:
            status = end.code or 0
    assert status == 0, f"{shlex.join([program, *words])}\n{said.getvalue()}{status}"
    return said.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("text", chosen_to_train())
def test_a_training_command_trains(text, here):
    maps.skip_without(text)
    if "--with_wandb" in text:
        pytest.importorskip("wandb")
    if "openspiel:" in text:
        pytest.importorskip("pyspiel")
    for package in PACKAGES:
        if any(re.fullmatch(package.ids, word) for word in COMMANDS[text]):
            pytest.importorskip(package.module)
    if "masked_taxi" in text and "Taxi-v4" not in gym.registry:
        pytest.skip("an older Gymnasium has no Taxi-v4")
    for other in re.findall(r"--config train_dir/(\w+)/config.yaml", text):
        RunDir.at("train_dir", other).prepare(cli.parse(["--env", "CartPole-v1"]))
    if "--init_from train_dir/doom_basic" in text:
        train_small("doom_basic", here)
    words = small(COMMANDS[text][1:], here / "train_dir")
    make_files_of_earlier_commands(text)
    # Children look for one's own module where the program was started.
    is_own = any(f" {name}:" in text for name in (*SHOWN, *OWN))
    said = run(sys.executable, "-m", "sf", *words) if is_own else run_here("sf-train", *words)
    assert "score:  sf-eval" in said
    config = cli.parse(words)
    summary = json.loads((here / "train_dir" / config.run.experiment_name / "summary.json").read_text())
    assert summary["env_steps"] >= config.run.train_for_env_steps


FLAGS = {  # that make them small
    "sf-eval": ["--episodes", "2", "--num_workers", "1", "--num_envs_per_worker", "1"],
    "sf-league": ["--matches", "2", "--num_workers", "1", "--num_envs_per_worker", "1"],
    "sf-enjoy": ["--episodes", "1", "--max_seconds", "1", "--speed", "1000"],
}


def runs_of_pages():
    """Of which runs the commands of the pages speak, with these commands."""
    found = {}
    for text, (program, *words) in COMMANDS.items():
        for word in words:
            path = Path(word)
            if program != "sf-train" and path.parts[:1] == ("train_dir",):
                found.setdefault(path.parts[1] if len(path.parts) > 1 else "doom_basic", []).append(text)
                break
    return found


def train_small(name, here, has_league=False):
    """A run with an episode and a best checkpoint. name: its directory's."""
    env = env_of_run(name)
    two = ["--num_policies", "2"] if env == "doom_duel" else []
    league = ["--past_share", "0.5", "--players", "random"] if has_league else []
    asked = ["--stats_avg", "2", "--summaries_every_sec", "0.3", "--train_for_env_steps", "1200", "--experiment", name]
    run_here("sf-train", *small(["--env", env, *two, *league], here / "train_dir"), *asked)
    checkpoints = here / "train_dir" / name / "checkpoints"
    latest, saved = checkpoint.load_latest(checkpoints / "policy_00" if two else checkpoints)
    checkpoint.save_best(latest.parent, saved, math.inf)
    return latest


def env_of_run(name):
    """That of the page's own command for this run, else the one that a run of this name has without `--experiment`."""
    for words in COMMANDS.values():
        if words[0] == "sf-train" and ("--experiment", name) in pairwise(words):
            return dict(pairwise(words))["--env"]
    return name.replace("openspiel_", "openspiel:")


@pytest.mark.long
@pytest.mark.parametrize(("name", "texts"), runs_of_pages().items())
def test_the_commands_for_a_run_do_their_work(name, texts, here):
    if name.startswith("openspiel_"):
        pytest.importorskip("pyspiel")
    latest = train_small(name, here, has_league=any(text.startswith("sf-league") for text in texts))
    for text in covering([text for text in texts if "--hub" not in text]):  # that is tests/storage/zoo/test_hub.py
        program, *words = COMMANDS[text]
        if "best.mp4" in words and not (here / "best.mp4").exists():
            run_here("sf-enjoy", f"train_dir/{name}", "--video", "best.mp4", *FLAGS["sf-enjoy"])
        for older in (Path(word) for word in words if word.endswith(".safetensors")):
            older.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(latest, older)
        run_here(program, *words, *FLAGS.get(program, []))
        for flag in ("--video", "--out", "--json", "--csv"):
            if flag in words:
                assert (here / words[words.index(flag) + 1]).stat().st_size > 0, text


@pytest.mark.long
@pytest.mark.parametrize("text", [text for text in COMMANDS if text.startswith("sf-eval zoo/") and "--against" in text])
def test_a_policy_of_the_zoo_meets_whom_the_pages_name(text, here):
    words = [*COMMANDS[text][1:], *FLAGS["sf-eval"]]
    assert "win rate" in run(sys.executable, "-m", "sf.tools.commands.evaluate", *words)


def tournaments():
    """Those of players that are no run of one's own: these are in `runs_of_pages`."""
    return [text for text, words in COMMANDS.items() if words[0] == "sf-league" and "train_dir" not in text]


@pytest.mark.long
@pytest.mark.parametrize("text", covering(tournaments()))
def test_a_tournament_of_the_pages_rates_its_players(text, here):
    if "openspiel:" in text:
        pytest.importorskip("pyspiel")
    make_files_of_earlier_commands(text)
    words = COMMANDS[text][1:]
    said = run(sys.executable, "-m", "sf.tools.report.league.command", *words, *FLAGS["sf-league"])
    assert ("random is held at 0, and" if "--reference" in words else "random is held at 0\n") in said
    for flag in {"--json", "--png"} & {*words}:
        assert (here / words[words.index(flag) + 1]).stat().st_size > 0


@pytest.mark.long
@pytest.mark.parametrize("text", [text for text in COMMANDS if text.startswith("sf-psro")])
def test_the_best_responses_of_the_page_are_trained(text, here):
    pytest.importorskip("pyspiel")
    of_search = {f"--{field.name}" for field in dataclasses.fields(PsroFlags)}
    of_run, kept = [], []
    for word, before in zip(COMMANDS[text][1:], ["", *COMMANDS[text][1:]], strict=False):
        (kept if of_search & {word, before} else of_run).append(word)
    ours = [*kept, "--iterations", "1", "--png", "psro.png"]
    said = run(sys.executable, "-m", "sf.tools.psro.command", *small(of_run, here / "train_dir"), *ours)
    assert "iteration 1: exploitability" in said
    assert (here / "psro.png").stat().st_size > 0


@pytest.mark.long
@pytest.mark.parametrize("text", [text for text in COMMANDS if text.startswith("sf-exploit")])
def test_the_response_of_the_page_is_trained(text, here):
    pytest.importorskip("pettingzoo")
    run_name, *words = COMMANDS[text][1:]
    ours = [*small(["--env", "toy_match_rps"], here / "train_dir")[2:], "--matches", "2"]
    assert "the response wins" in run(sys.executable, "-m", "sf.tools.psro.exploit_command", run_name, *words, *ours)
    assert json.loads((here / "exploit.json").read_text())["env_steps"] > 0


@pytest.mark.long
def test_the_sweep_of_the_page_comes_to_its_end(here):
    (page,) = (b for b in blocks(ROOT / "docs" / "sweeps.md", "yaml") if "grid:" in b)
    sweep = yaml.safe_load(page)
    flags = small([], here / "train_dir")
    of_runs = {name[2:]: value for name, value in zip(flags[::2], flags[1::2], strict=True) if name != "--train_dir"}
    for name in sweep["grid"]:
        of_runs.pop(name, None)
        sweep["grid"][name] = sweep["grid"][name][:1]
    sweep["flags"] |= of_runs | {"encoder_mlp_layers": 16, "batch_size": 64}
    (here / "sweep.yaml").write_text(yaml.safe_dump(sweep | {"seeds": [0]}))
    assert "mean" in run_here("sf-sweep", "sweep.yaml")


@pytest.mark.parametrize("text", [text for text, (program, *_) in COMMANDS.items() if program == "sf-envs"])
def test_a_list_of_environments_has_some(text):
    assert "doom_basic" in run_here(*COMMANDS[text])


@pytest.mark.parametrize("text", [text for text, (program, *_) in COMMANDS.items() if program == "sf-play"])
def test_a_person_plays_what_the_pages_name(text, here, monkeypatch):
    if "openspiel:" in text:
        pytest.importorskip("pyspiel")
    if "connect_four" in text:
        pytest.importorskip("pettingzoo")
    if "DiscretizeAction" in text and not hasattr(gym.wrappers, "DiscretizeAction"):
        pytest.skip("an older Gymnasium has no DiscretizeAction")
    Typist(monkeypatch, "11", {12: "+escape"})
    run_here(*COMMANDS[text])


def bench_commands():
    return covering([text for text, (program, *_) in COMMANDS.items() if program == "sf-bench"])


@pytest.mark.long
@pytest.mark.parametrize("text", bench_commands())
def test_a_benchmark_measures(text, here):
    maps.skip_without(text)
    flags = ["--num_workers", "1", "--num_envs_per_worker", "2", "--batch_size", "128", "--learner_threads", "1"]
    flags += ["--seconds", "0.5"] + (["--budget_s", "5"] if "--autotune" in text else ["--rounds", "1"])
    if not {"--autotune", "doom_battle"} & {*COMMANDS[text]}:  # one of them measures all layers
        flags += ["--layers", "simulation"]
    assert "frames/s" in run_here(*COMMANDS[text], *flags)


def test_no_command_is_one_that_no_test_runs():
    programs = {Path(command[0]).name for command in COMMANDS.values()}
    assert programs - PROGRAMS.keys() == {"make", "pip", "python", "python3"}
    targets = {command[1] for command in COMMANDS.values() if command[0] == "make"}
    assert targets == {"train", "test", "bench-learning"}
    scripts = {command[1] for command in COMMANDS.values() if command[0] == "python" and command[1].endswith(".py")}
    names = (
        "bench_learning",
        "bench_openspiel",
        "bench_peers",
        "bench_queues",
        "documentation/compare_searches",
        "fault_campaign",
        "gpu_campaign",
        "rank_campaign",
    )
    assert scripts == {"docs/examples/tiny_appo.py", *(f"scripts/{name}.py" for name in names)}
