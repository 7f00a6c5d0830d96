"""The examples of docs/extending.md: each as it is written, two of them as real runs."""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
import warm
from group_driver import play
from runs import FAST

import sf
from sf import envs
from sf.config import Config
from sf.run.planning import make_plan
from sf.tools.commands import cli

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
SCRIPTS = sorted(EXAMPLES.glob("own_*.py"))
STATS = {
    "own_env": {"arrived"},
    "own_vector_env": {"final_distance"},
    "own_match": {"caught"},
    "own_metrics": {"largest_angle_deg", "turns"},
    "own_reward_shaping": {"solved", "shaped_return"},
    "own_rts": {"won"},
}


def plan_of(script, monkeypatch, tmp_path):
    """What the script would train, up to the moment at which processes would start."""
    plans = []

    def main(**defaults):
        plans.append(make_plan(cli.parse(["--train_dir", str(tmp_path)], defaults=defaults)))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sf.__main__.main", main)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    (plan,) = plans
    return plan


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_can_be_trained_by_the_commands_that_it_names(script, monkeypatch, tmp_path):
    assert len(script.read_text().splitlines()) < 70
    config = plan_of(script, monkeypatch, tmp_path).config
    group = envs.make_group(config.run.env, 4, config.environment, seed=0, first_env_idx=0)
    _, steps = play(group, 60 if config.run.env.startswith("doom") else 201)
    episodes = [episode for step in steps for episode in step.episodes]
    assert episodes
    assert set(episodes[0].stats) >= STATS.get(script.stem, set())
    # The commands that it names are commands.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    text = script.read_text()
    commands = re.findall(rf"^ *(?:sf-train|python {script.name})\b([^#\n]*)", text, re.MULTILINE)
    assert len(commands) == len(re.findall(r"^ *(?:sf-train|python) ", text, re.MULTILINE)) >= 2
    if script.stem == "own_doom_map":
        runpy.run_path(str(script))["make_map"](tmp_path / "my_maps")
    for command in (command[command.index("--") :] for command in commands if "--" in command):
        config = cli.parse(command.split(), defaults={"env": "CartPole-v1"})  # a script has one of its own
        assert config != Config()
        if "--env" in command:
            make_plan(config)


def test_the_example_in_python_trains_what_it_says(monkeypatch, tmp_path, capsys):
    trained = []

    def train(config):
        trained.append(config)
        return {"mean_return": 1.0, "run_dir": str(tmp_path), "stopped_by": None}

    monkeypatch.setattr("sf.api.train", train)
    runpy.run_path(str(EXAMPLES / "from_python.py"), run_name="__main__")
    assert [config.run.seed for config in trained] == [0, 1]
    assert [config.run.experiment_name for config in trained] == ["cartpole_0", "cartpole_1"]
    assert trained[0] == sf.make_config(
        env="CartPole-v1",
        num_workers=2,
        train_for_env_steps=20_000,
        restart_behavior="overwrite",
        experiment="cartpole_0",
    )
    assert capsys.readouterr().out.count("mean return 1.0") == 2


def run(*command, **kwargs):
    words = [sys.executable, *command]
    done = warm.run(words, capture_output=True, text=True, timeout=300, check=False, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_script_with_an_environment_of_its_own_trains(tmp_path):
    flags = [*FAST, "--train_dir", str(tmp_path), "--train_for_env_steps", "640"]
    output = run(str(EXAMPLES / "own_env.py"), *flags)
    assert (tmp_path / "reach" / "summary.json").is_file()
    assert f"resume: python {EXAMPLES / 'own_env.py'} " in output


@pytest.mark.long
def test_environment_and_encoder_are_found_by_module_and_name_in_the_working_directory(tmp_path):
    flags = [*FAST, "--train_dir", str(tmp_path), "--train_for_env_steps", "640"]
    flags += ["--env", "own_metrics:measured", "--encoder", "own_encoder:Fourier"]
    as_a_command = {**os.environ, "PYTHONSAFEPATH": "1"}  # which has no working directory on its path
    run("-c", "from sf import main; main()", *flags, cwd=EXAMPLES, env=as_a_command)
    assert (tmp_path / "own_metrics_measured" / "summary.json").is_file()


def test_an_installed_package_is_found_by_its_entry_points(tmp_path):
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((EXAMPLES / "packaged" / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"my_envs-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    code = (
        "import sys\n"
        "from sf import envs\n"
        "from sf.envs import EnvOptions\n"
        "print(envs.describe('my_bandit', EnvOptions()).action_space, 'my_envs.linear' in sys.modules)\n"
        "from sf.config import ModelConfig\n"
        "from sf.model.encoders.choice import build_encoder\n"
        "box = envs.describe('my_bandit', EnvOptions()).obs_space['obs']\n"
        "print(build_encoder('my_linear', box, ModelConfig()).out_size)"
    )
    path = os.pathsep.join([str(tmp_path), str(EXAMPLES / "packaged"), str(EXAMPLES.parent.parent)])
    done = warm.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split("\n")[:2] == ["Discrete(4) False", "32"], done.stderr
