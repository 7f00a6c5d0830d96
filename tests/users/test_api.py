"""Training from Python: `from sf import train`."""

import json
import signal
import subprocess
import sys

import pytest
import warm
from untrained import untrained

import sf
from sf.config import Config
from sf.envs.custom import given
from sf.envs.toys.single import Identity
from sf.run import trainer
from sf.run.startup import initial_weights
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli, enjoy, evaluate

TINY = {
    "env": "toy_identity",
    "num_workers": 1,
    "num_envs_per_worker": 2,
    "batch_size": 64,
    "rollout": 8,
    "device": "cpu",
    "encoder_mlp_layers": [16],
    "summaries_every_sec": 0.3,
    "learner_threads": 1,
}


def test_importing_the_package_imports_nothing_else_of_it():
    code = (
        "import sys, sf\n"
        "assert {name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'tyro', 'rich'} == set()\n"
        "assert sf.Config().run.env and sf.train and sf.make_config and sf.main\n"
        "assert 'torch' not in sys.modules\n"
        "assert set(sf.__all__) == set(dir(sf))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_flags_from_python_give_the_configuration_of_the_command_line():
    args = ["--env", "toy_memory", "--encoder_mlp_layers", "32", "16", "--async_rl", "false"]
    args += ["--env_kwargs", '{"delay": 3}']
    flags = {"env": "toy_memory", "encoder_mlp_layers": [32, 16], "async_rl": False, "env_kwargs": {"delay": 3}}
    config = sf.make_config(**flags)
    assert config.environment.kwargs == cli.parse(args).environment.kwargs == {"delay": 3}
    assert config.replace(env_kwargs="{}") == cli.parse(args).replace(env_kwargs="{}")


def test_the_defaults_of_a_script_lie_between_the_preset_and_the_command_line():
    config = cli.parse(["--rollout", "16"], defaults={"env": "doom_basic", "rollout": 8, "gamma": 0.5})
    assert (config.sampler.rollout, config.learner.gamma, config.model.core) == (16, 0.5, "gru")
    assert cli.parse(["--env", "toy_bandit"], defaults={"env": "doom_basic"}).model == Config().model


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"num_worker": 3}, "num_workers"),
        ({"config": "dom_basic"}, "doom_basic"),
        ({"batch_size": 1000, "rollout": 32}, "multiple of rollout"),
        ({"config": Config()}, "config.replace"),
    ],
)
def test_a_wrong_flag_is_answered_with_what_to_change(flags, named):
    with pytest.raises(ValueError, match=named):
        sf.train(**flags, **({"seed": 3} if isinstance(flags.get("config"), Config) else {}))


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """What a program without a file says: it trains twice, and is interrupted the second time."""
    program = (
        "import __main__, json, signal\n"
        "from sf import train\n"
        "from sf.envs.toys.single import Identity\n"
        "class Walk(Identity):\n"
        "    pass\n\n"
        f"flags = {TINY!r}\n"
        "first = train(**{**flags, 'env': Walk, 'config': 'toy'}, experiment='first', train_for_env_steps=640)\n"
        "print('FIRST', json.dumps(first), flush=True)\n"
        "second = train(**flags, experiment='second', train_for_seconds=600)\n"
        "print('SECOND', json.dumps(second), flush=True)\n"
        "print('HANDLER', signal.getsignal(signal.SIGINT) is signal.default_int_handler, __main__.__file__)\n"
    )
    directory = tmp_path_factory.mktemp("session")
    as_from_stdin = "import __main__, sys; __main__.__file__ = '<stdin>'; exec(sys.stdin.read())"
    process = warm.Popen(
        [sys.executable, "-c", as_from_stdin],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
    )
    process.stdin.write(program)
    process.stdin.close()
    said = {}
    is_interrupted = False
    for line in process.stdout:
        word, _, rest = line.partition(" ")
        said[word] = rest
        trains = word != "FIRST" and "frames" in line and "frames 0 " not in line
        if "FIRST" in said and trains and not is_interrupted:
            is_interrupted = True
            process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0, said
    return directory, said


def test_a_program_without_a_file_trains_twice_and_goes_on_after_an_interrupt(session):
    directory, said = session
    summary = json.loads(said["FIRST"])
    run_dir = directory / summary.pop("run_dir")
    assert summary == json.loads((run_dir / "summary.json").read_text())
    assert (summary["env_steps"], summary["stopped_by"]) == (640, None)
    assert "env: python:Walk\n" in (run_dir / "config.yaml").read_text()  # a name, and no code
    summary = json.loads(said["SECOND"])
    assert summary["stopped_by"] == "SIGINT"
    assert summary["env_steps"] > 0
    assert len(list((directory / summary["run_dir"] / "checkpoints").glob("checkpoint_*"))) == 1
    assert said["HANDLER"].split() == ["True", "<stdin>"]


@pytest.mark.long
def test_a_script_that_trains_whenever_it_is_imported_is_told_so_once(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(f"from sf import train\ntrain(**{TINY!r}, train_for_env_steps=640)\n")
    done = warm.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert '`if __name__ == "__main__":`' in done.stderr
    assert done.stderr.count("Traceback") == 1


def test_a_run_that_is_complete_gives_its_summary_and_one_sentence(tmp_path, monkeypatch, capsys):
    def complete(*_):
        raise initial_weights.CompleteRunError(
            "it is finished (640 env steps): raise --train_for_env_steps to continue it or --restart_behavior restart"
        )

    monkeypatch.setattr(trainer, "train", complete)
    flags = {"env": "toy_identity", "train_dir": str(tmp_path)}
    run_dir = RunDir.at(str(tmp_path), "toy_identity")
    run_dir.prepare(sf.make_config(**flags))
    for torn in (None, '{"env_'):  # it has never said how it ended
        if torn is not None:
            run_dir.summary.write_text(torn)
        with pytest.raises(ValueError, match="restart_behavior='restart'"):
            sf.train(**flags)
    run_dir.write_summary({"env_steps": 640, "stopped_by": None})
    assert sf.train(**flags) == {"env_steps": 640, "stopped_by": None, "run_dir": str(run_dir.path)}
    assert "nothing was trained" in capsys.readouterr().out


def test_the_summary_of_an_earlier_version_has_its_signal_as_a_word(tmp_path):
    run_dir = RunDir(tmp_path)
    for before, after in ((signal.SIGINT, "SIGINT"), ("on_record", "on_record"), (None, None), (99, 99)):
        run_dir.write_summary({"stopped_by": before})
        assert run_dir.saved_summary() == {"stopped_by": after}


@pytest.fixture
def run_of_an_object(tmp_path, monkeypatch):
    """A run whose environment was given as a class, in a program that has ended."""
    saved = untrained(sf.make_config(env=type("Walk", (Identity,), {})).run.env)
    run_dir = RunDir(tmp_path / "walk")
    run_dir.prepare(Config().replace(**saved.state["config"]))
    checkpoint.save(run_dir.checkpoints, saved, saved.state["env_steps"], keep=2)
    monkeypatch.setattr(given, "_given", {})
    monkeypatch.chdir(tmp_path)
    return run_dir.path


ASKED_FOR = "give it again, as train(env=Walk)"


def test_a_run_of_an_object_goes_on_only_where_it_is_given_again(run_of_an_object):
    flags = {"train_dir": str(run_of_an_object.parent), "experiment": run_of_an_object.name}
    with pytest.raises(ValueError) as error:
        sf.train(**flags)
    assert ASKED_FOR in str(error.value)
    with pytest.raises(ValueError, match="python:Walk"):
        sf.make_config(**flags, env=type("Run", (Identity,), {}))
    assert sf.make_config(**flags, env=type("Walk", (Identity,), {})).run.env == "python:Walk"


@pytest.mark.parametrize("command", [evaluate, enjoy])
def test_a_command_cannot_make_the_environment_of_an_object(command, run_of_an_object, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sf-eval", str(run_of_an_object), *["--video", "a.gif"] * (command is enjoy)])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert ASKED_FOR in capsys.readouterr().err


def test_the_policy_of_an_object_acts_without_it(run_of_an_object):
    policy = sf.load_policy(run_of_an_object)
    assert policy.env_id == "python:Walk"
    assert "env_id='python:Walk', env_steps=1234, obs_space=Discrete(4)" in repr(policy)
    assert policy.action_space.contains(policy.act(policy.obs_space.sample()))
