"""Commands that README and docs show are run, as they stand there and with flags behind them that make them small.

They are chosen to have most flags among them, on environments that cost little: those of a simulator are tested where
it is, those of exports, responses and searches in tests/tools. `test_docs` sees to it that all commands parse. Those of
pip and make are run by `test_installation`, those of scripts by tests/scripts, the one file by `test_tiny_appo`.
"""

import dataclasses
import importlib
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
import pytest
import warm
import yaml
from pages import PAGES, ROOT, blocks, commands
from typist import Typist

from sf.storage import best_checkpoint, checkpoint
from sf.tools.commands import cli
from sf.tools.psro.command import PsroFlags

COMMANDS = {shlex.join(command): command for page in PAGES for command in commands(page)}
PROGRAMS = make_flags_page.entry_points()
ROLLOUT = 8
NO_RUN = {"--help", "--check", "--tyro-print-completion"}  # flags of sf-train with which it trains nothing
LIGHT = (
    r"--env (CartPole|MountainCar|toy_|openspiel:leduc|masked_taxi:)"  # environments that are quick to make and to step
)
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
    of_training = [text for text, (program, *_) in COMMANDS.items() if program == "sf-train"]
    return [text for text in of_training if re.search(LIGHT, text) and not NO_RUN & {*text.split()}]


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
    for word, value in pairwise([*words, "--"]):
        if word == "--env":
            found.add("gymnasium" if value in gym.registry else re.split("[:_/-]", value)[0])
        elif word.startswith("--"):
            found.add(word)
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the modules that pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
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
@pytest.mark.parametrize("text", covering(train_commands(), least=2))
def test_a_training_command_trains(text, here):
    if "openspiel:" in text:
        pytest.importorskip("pyspiel")
    if "masked_taxi" in text and "Taxi-v4" not in gym.registry:
        pytest.skip("an older Gymnasium has no Taxi-v4")
    words = small(COMMANDS[text][1:], here / "train_dir")
    if "--demonstrations" in words:
        name, env = (words[words.index(flag) + 1] for flag in ("--demonstrations", "--env"))
        run_here("sf-record", "random", "--env", env, "--to", name, "--episodes", "12", "--num_workers", "1")
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


NO_TOY = re.compile(
    "doom_(match|bot)|bot:doom|rts_|openspiel|exploitability|--hub|sf-export"
)  # what a toy run cannot do


def commands_for_runs():
    """Those of the pages that are about a run of one's own, beside its name, few of them with most flags."""
    found = {}
    for text, (program, *words) in COMMANDS.items():
        names = [word for word in words if Path(word).parts[:1] == ("train_dir",)]
        if program != "sf-train" and names and not NO_TOY.search(text):
            path = Path(names[0])
            found[text] = path.parts[1] if len(path.parts) > 1 else "doom_basic"
    return {text: found[text] for text in covering(found, least=2)}


def train_small(train_dir, *flags):
    """Returns the path of its latest checkpoint, which is its best one, too."""
    asked = ["--stats_avg", "2", "--summaries_every_sec", "0.3", "--train_for_env_steps", "1200", "--experiment", "run"]
    run_here("sf-train", *small(flags, train_dir), *asked)
    checkpoints = train_dir / "run" / "checkpoints"
    latest, saved = checkpoint.load_latest(next(checkpoints.glob("policy_00"), checkpoints))
    best_checkpoint.save_best(latest.parent, saved, math.inf)
    return latest


@pytest.mark.long
@pytest.mark.parametrize("is_match", [False, True])
def test_the_commands_for_a_run_do_their_work(is_match, here):
    league = ["--num_policies", "2", "--past_share", "0.5", "--players", "random"]
    latest = train_small(
        here / "train_dir", *(["--env", "toy_match_rps", *league] if is_match else ["--env", "CartPole-v1"])
    )
    chosen = {text: name for text, name in commands_for_runs().items() if ("duel" in name) == is_match}
    assert chosen
    for name in set(chosen.values()):
        (here / "train_dir" / name).symlink_to("run")
    if not is_match:
        run_here("sf-enjoy", "train_dir/run", "--video", "best.mp4", *FLAGS["sf-enjoy"])
    for text in chosen:
        program, *words = COMMANDS[text]
        for older in (Path(word) for word in words if word.endswith(".safetensors")):
            older.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(latest, older)
        run_here(program, *words, *FLAGS.get(program, []))
        for flag in ("--video", "--out", "--json", "--csv"):
            if flag in words and "--dry_run" not in words:
                assert (here / words[words.index(flag) + 1]).stat().st_size > 0, text


@pytest.mark.long
def test_a_player_of_the_pages_meets_a_policy_of_the_zoo(here):
    pytest.importorskip("pyspiel")
    texts = [text for text in COMMANDS if "zoo/connect_four" in text and "my_players:" in text]
    (evaluated,) = (text for text in texts if text.startswith("sf-eval"))
    assert "win rate" in run_here(*COMMANDS[evaluated], *FLAGS["sf-eval"])
    (rated,) = (text for text in texts if {"--json", "--png"} < {*COMMANDS[text]})
    assert "random is held at 0\n" in run_here(*COMMANDS[rated], *FLAGS["sf-league"])
    for flag in ("--json", "--png"):
        words = COMMANDS[rated]
        assert (here / words[words.index(flag) + 1]).stat().st_size > 0


@pytest.mark.long
def test_the_best_responses_of_the_page_are_trained(here):
    pytest.importorskip("pyspiel")
    of_search = {f"--{field.name}" for field in dataclasses.fields(PsroFlags)}
    of_run, kept = [], []
    words = next(words for words in COMMANDS.values() if words[0] == "sf-psro" and "--png" in words)[1:]
    for word, before in zip(words, ["", *words], strict=False):
        (kept if of_search & {word, before} else of_run).append(word)
    said = run_here("sf-psro", *small(of_run, here / "train_dir"), *kept, "--iterations", "1")
    assert "iteration 1: exploitability" in said
    assert (here / "psro.png").stat().st_size > 0


@pytest.mark.long
def test_the_sweep_of_the_page_comes_to_its_end(here):
    (page,) = (b for b in blocks(ROOT / "docs" / "sweeps.md", "yaml") if "grid:" in b)
    sweep = yaml.safe_load(page)
    flags = small(["--env", sweep["flags"]["env"]], here / "train_dir")
    of_runs = {name[2:]: value for name, value in zip(flags[::2], flags[1::2], strict=True) if name != "--train_dir"}
    for name in sweep["grid"]:
        of_runs.pop(name, None)
        sweep["grid"][name] = sweep["grid"][name][:1]
    sweep["flags"] |= of_runs | {"encoder_mlp_layers": 16, "batch_size": 64}
    (here / "sweep.yaml").write_text(yaml.safe_dump(sweep | {"seeds": [0]}))
    assert "mean" in run_here("sf-sweep", "sweep.yaml")


def test_a_list_of_environments_has_some():
    assert "doom_basic" in run_here("sf-envs", "doom")


PLAYED = [text for text, (program, *_) in COMMANDS.items() if program == "sf-play"]


@pytest.mark.parametrize("text", covering([text for text in PLAYED if not re.search("atari|doom", text)], least=2))
def test_a_person_plays_what_the_pages_name(text, here, monkeypatch):
    if "openspiel:" in text:
        pytest.importorskip("pyspiel")
    if "DiscretizeAction" in text and not hasattr(gym.wrappers, "DiscretizeAction"):
        pytest.skip("an older Gymnasium has no DiscretizeAction")
    Typist(monkeypatch, "11", {12: "+escape"})
    run_here(*COMMANDS[text])


@pytest.mark.long
def test_a_benchmark_measures(here):
    text = max((text for text in COMMANDS if text.startswith("sf-bench")), key=lambda text: len(features(text)))
    flags = ["--env", "toy_identity", "--num_workers", "1", "--num_envs_per_worker", "2", "--batch_size", "128"]
    flags += ["--learner_threads", "1", "--seconds", "0.5", "--rounds", "1", "--compile", "false"]
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
