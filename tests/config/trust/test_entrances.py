"""What a file from somebody else can do: nothing that it names is run, whichever command is given it."""

import contextlib
import functools
import importlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import yaml
from untrained import untrained

from sf import load_policy, make_config
from sf.config.trust import named_code, remember_code, require_trusted
from sf.run.planning import make_plan
from sf.run.startup import initial_weights
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

MARKER = "marker"
PLANTED = (
    f"open({MARKER!r}, 'w').close()\nfrom sf.envs.toys.single import Identity as Env\n"
    "class Net: pass\nclass Wrap(Env): pass\n"
)
SHELL = {"env_kwargs": json.dumps({"command": f"touch {MARKER}"})}
PAYLOADS = {
    "a command": {"env": "os:system", **SHELL},
    "a program": {"env": "subprocess:Popen", "env_kwargs": json.dumps({"args": ["touch", MARKER]})},
    "an environment beside it": {"env": "planted:Env"},
    "an id of Gymnasium beside it": {"env": "planted:Env-v0"},
    "a match beside it": {"env": "planted:parallel_env"},
    "a wrapper beside it": {"env_wrappers": ["planted:Wrap"]},
    "a wrapper with arguments": {"env_wrappers": ["gymnasium.wrappers:FlattenObservation", {"planted:Wrap": {"a": 1}}]},
    "a wrapper that is a command": {"env_wrappers": [{"os:system": None}]},
    "an encoder beside it": {"encoder": "planted:Net"},
    "a model beside it": {"model": "planted:Net"},
    "a player beside it": {"players": ["planted:Net"], "past_share": 0.2},
    "a player that is a program": {"players": [f"gtp:touch {MARKER}"], "past_share": 0.2},
    "a teacher beside it": {"teacher": ["planted:Net"]},
    "a teacher that is a program": {"teacher": [f"gtp:touch {MARKER}"]},
    "an intrinsic reward beside it": {"intrinsic": "planted:Net"},
}
if importlib.util.find_spec("minigrid") is None:  # where it is installed, that one is taken
    PAYLOADS["a package of the same name as a known one"] = {"env": "MiniGrid-Empty-5x5-v0"}
COMMANDS = {
    "sf-train": ("sf.__main__", ["--train_dir", ".", "--experiment", "theirs"]),
    "sf-eval": ("sf.tools.commands.evaluate", ["theirs", "--num_workers", "1", "--episodes", "1"]),
    "sf-eval of the file": (
        "sf.tools.commands.evaluate",
        ["theirs.safetensors", "--num_workers", "1", "--episodes", "1"],
    ),
    "sf-eval --against": ("sf.tools.commands.evaluate", ["mine", "--against", "theirs", "--episodes", "1"]),
    "sf-league": ("sf.tools.report.league.command", ["theirs", "random", "--num_workers", "1"]),
    "sf-league of others": ("sf.tools.report.league.command", ["mine", "theirs", "--num_workers", "1"]),
    "sf-exploit": ("sf.tools.psro.exploit_command", ["theirs", "--train_dir", "searches", "--matches", "2"]),
    "sf-enjoy": ("sf.tools.commands.enjoy", ["theirs", "--video", "out.gif", "--episodes", "1"]),
    "sf-play": ("sf.tools.commands.play.command", ["theirs"]),
    "sf-play --against": ("sf.tools.commands.play.command", ["toy_match_rps", "--against", "theirs"]),
    "sf-gtp": ("sf.tools.commands.gtp.command", ["theirs"]),
    "sf-export": ("sf.tools.commands.export", ["theirs", "--out", "out.pt2"]),
    "sf-export of a folder": ("sf.tools.commands.export", ["theirs", "--out", "shared", "--episodes", "1"]),
    "sf-sweep": ("sf.tools.sweep.command", ["theirs.sweep.yaml", "--train_dir", "sweeps"]),
    "sf-tune": ("sf.tools.tune.command", ["theirs.tune.yaml", "--train_dir", "searches"]),
    "sf-train --config": ("sf.__main__", ["--config", "theirs/config.yaml", "--experiment", "new"]),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_theirs(tmp_path, monkeypatch):
    """Where an archive of theirs was unpacked, and the user works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for name in ("planted.py", "minigrid.py"):
        Path(name).write_text(PLANTED)
    yield
    sys.modules.pop("minigrid", None)
    sys.modules.pop("planted", None)


@functools.cache
def honest_checkpoint():
    return untrained("toy_identity")


def write_run(name, flags):
    """As if it had been trained with these flags."""
    honest = honest_checkpoint()
    saved = Checkpoint(honest.tensors, {**honest.state, "config": {**honest.state["config"], **flags}})
    run_dir = RunDir(Path(name))
    run_dir.checkpoints.mkdir(parents=True)
    (run_dir.checkpoints / "checkpoint_000001_000000001234.safetensors").write_bytes(checkpoint.encode(saved))
    run_dir.config.write_text(yaml.safe_dump(json.loads(json.dumps(saved.state["config"]))))
    records = [{"env_steps": n, "env_frames": n, "seconds": n / 400, "mean_return": 1.0} for n in (617, 1234)]
    run_dir.metrics.write_text("".join(json.dumps(record) + "\n" for record in records))
    Path(f"{name}.safetensors").write_bytes(checkpoint.encode(saved))
    return run_dir


def run(module, words):
    """A command with these arguments; its status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["a command", *words])
        try:
            importlib.import_module(module).main()
        except SystemExit as end:
            return end.code or 0
    return 0


def refused(capsys, module, words):
    """What is said by a command that ends with status 2."""
    assert run(module, words) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1
    return said


def named_by(what):
    """The name of code in a payload."""
    name = next(value for flag, value in PAYLOADS[what].items() if flag != "env_kwargs")
    return name if isinstance(name, str) else next(iter(name[-1]) if isinstance(name[-1], dict) else iter(name))


# All payloads for two commands, and for each other command two, in turn.
OFFERED = [(what, command) for command in ("sf-train", "sf-eval") for what in PAYLOADS]
OFFERED += [
    ([*PAYLOADS][(2 * n + m) % len(PAYLOADS)], command)
    for n, command in enumerate(sorted(COMMANDS.keys() - {"sf-train", "sf-eval"}))
    for m in range(2)
]


@pytest.mark.parametrize(("what", "command"), OFFERED)
def test_no_command_runs_what_a_file_names(what, command, capsys):
    write_run("theirs", PAYLOADS[what])
    if "mine" in COMMANDS[command][1]:
        write_run("mine", {})
    sweep = {"env": "toy_identity", "num_workers": 1, **PAYLOADS[what]}
    Path("theirs.sweep.yaml").write_text(yaml.safe_dump({"flags": sweep}))
    search = {"gamma": [0.9, 0.99]}
    Path("theirs.tune.yaml").write_text(yaml.safe_dump({"flags": sweep, "search": search}))
    said = refused(capsys, *COMMANDS[command])
    assert not Path(MARKER).exists()
    assert "theirs" in said
    assert "--trust true" in said
    assert named_by(what) in said


@pytest.mark.parametrize(
    ("what", "path"),
    [*((what, "theirs.safetensors") for what in PAYLOADS), ("a command", "theirs"), ("a model beside it", "theirs")],
)
def test_a_policy_that_is_loaded_runs_nothing(what, path):
    write_run("theirs", PAYLOADS[what])
    with pytest.raises(ValueError, match=r"that is code, .* trust=True"):
        load_policy(path)
    assert not Path(MARKER).exists()


def begun_with_theirs():
    own = {"env": "toy_identity", "encoder_mlp_layers": [16], "device": "cpu"}
    plan = make_plan(make_config(**own, init_from="theirs"))
    return initial_weights.initial_checkpoints(plan, [0])[0]


@pytest.mark.parametrize("what", PAYLOADS)
def test_a_run_that_begins_with_their_weights_runs_nothing(what):
    write_run("theirs", PAYLOADS[what])
    if {"env", "env_wrappers", "players", "teacher", "intrinsic"} & PAYLOADS[what].keys():
        assert begun_with_theirs().state["config"]["env"] == "toy_identity"
    else:
        with pytest.raises(ValueError, match=f"they differ in {min(PAYLOADS[what])}"):
            begun_with_theirs()
    assert not Path(MARKER).exists()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("sf.tools.report.page", ["theirs", "--out", "page.html"]),
        ("sf.tools.report.plot", ["theirs", "--out", "plot.svg"]),
    ],
)
@pytest.mark.parametrize("what", ["a command", "an encoder beside it"])
def test_reports_and_plots_say_what_a_file_names_and_do_not_run_it(what, module, words):
    write_run("theirs", PAYLOADS[what])
    assert run(module, words) == 0
    assert Path(words[-1]).stat().st_size > 0
    assert not Path(MARKER).exists()


def test_the_python_call_that_trains_is_as_careful(capsys):
    write_run("theirs", PAYLOADS["an encoder beside it"])
    with pytest.raises(ValueError, match=r"config\.yaml names encoder 'planted:Net'"):
        make_config(experiment="theirs", train_dir=".")
    assert not Path(MARKER).exists()


def test_a_run_that_goes_on_says_neither_where_it_is_nor_what_becomes_of_others():
    precious = write_run("precious", {})
    where = {"train_dir": ".", "experiment": "precious", "restart_behavior": "overwrite"}
    write_run("runs/toy_identity", where)
    config = make_config(env="toy_identity", train_dir="runs")
    assert (config.run.train_dir, config.run.experiment_name) == ("runs", "toy_identity")
    assert config.run.restart_behavior == "resume"
    assert precious.config.is_file()


@pytest.mark.parametrize("path", ["theirs/config.yaml", "theirs.sweep.yaml"])
def test_no_file_can_declare_itself_trusted(path, capsys):
    write_run("theirs", {**PAYLOADS["an encoder beside it"], "trust": True})
    Path("theirs.sweep.yaml").write_text(yaml.safe_dump({"flags": {"env": "planted:Env", "trust": True}}))
    command = "sf-train" if path.startswith("theirs/") else "sf-sweep"
    assert "trust" in refused(capsys, *COMMANDS[command])
    assert not Path(MARKER).exists()


@pytest.mark.parametrize(
    "flags",
    [
        {"env": "toy_identity", "encoder=planted:Net": []},
        {"env": "toy_identity", "encoder_mlp_layers": [16, "--encoder", "planted:Net"]},
        {"env": "toy_match_rps", "past_share": 0.2, "players": ["random", "--trust", "true", "--env", "planted:Env"]},
        {"env": "toy_identity", "restart-behavior": "overwrite"},
    ],
)
def test_a_sweep_cannot_hide_a_flag_in_a_name_or_a_value(flags, capsys):
    Path("theirs.sweep.yaml").write_text(yaml.safe_dump({"flags": flags}))
    refused(capsys, *COMMANDS["sf-sweep"])
    assert not Path(MARKER).exists()


HIDDEN = ["random", "--trust", "true", "--env", "planted:Env"]


@pytest.mark.parametrize("place", ["flags", "search"])
def test_a_search_cannot_hide_a_flag_in_a_value(place, capsys):
    flags = {"env": "toy_match_rps", "past_share": 0.2, "num_workers": 1, "train_for_env_steps": 1000}
    search = {"gamma": [0.9, 0.99]}
    if place == "flags":
        flags["players"] = HIDDEN
    else:
        search["players"] = [["random"], HIDDEN]
    Path("theirs.tune.yaml").write_text(yaml.safe_dump({"flags": flags, "search": search}))
    assert "cannot begin with --" in refused(capsys, *COMMANDS["sf-tune"])
    assert not Path(MARKER).exists()


def test_a_run_of_a_sweep_that_goes_on_is_not_more_trusted_than_another(capsys):
    Path("mine.yaml").write_text(yaml.safe_dump({"flags": {"env": "toy_identity", "num_workers": 1}, "seeds": [0]}))
    write_run("sweeps/mine/seed=0", {**PAYLOADS["an encoder beside it"], "num_workers": 1, "seed": 0})
    assert run("sf.tools.sweep.command", ["mine.yaml", "--train_dir", "sweeps"]) == 2
    assert "was trained with encoder planted:Net" in " ".join(capsys.readouterr().err.split())
    assert not Path(MARKER).exists()


@pytest.mark.parametrize(
    "env", ["GymV21Environment-v0", "GymV26Environment-v0", "doom:theirs/my.cfg", "doom:my.cfg", "__main__:something"]
)
def test_names_without_a_module_that_lead_to_code_of_theirs_are_refused_as_well(env, capsys):
    Path("my.cfg").write_text("")
    write_run("theirs", {"env": env})
    assert "that is code" in refused(capsys, *COMMANDS["sf-eval"])


@pytest.mark.parametrize(
    "env", ["toy_identity", "CartPole-v1", "ALE/Pong-v5", "doom:basic.cfg", "pettingzoo:classic/rps_v2", "openspiel:go"]
)
def test_what_comes_with_packages_needs_no_trust(env):
    assert named_code({"env": env, "encoder": "auto", "model": "actor_critic"}) == []


@pytest.mark.parametrize("name", ["gymnasium.wrappers:FlattenObservation", "gymnasium.wrappers.vector:ClipReward"])
def test_gymnasiums_own_wrappers_need_no_trust_unless_they_write_files(name):
    assert named_code({"env": "toy_identity", "env_wrappers": (name, json.dumps({name: {"a": 1}}))}) == []
    (recorder,) = named_code({"env": "toy_identity", "env_wrappers": ("gymnasium.wrappers:RecordVideo",)})
    assert (recorder.flag, recorder.name) == ("env_wrappers", "gymnasium.wrappers:RecordVideo")


def test_a_strategy_game_needs_trust_where_it_writes_files():
    for env_kwargs in ("{}", '{"opponent": "rush"}', '{"replays": null}'):
        assert named_code({"env": "rts_mini", "env_kwargs": env_kwargs}) == []
    for env_kwargs in ('{"replays": "anywhere"}', "["):
        (writer,) = named_code({"env": "rts_mini", "env_kwargs": env_kwargs})
        assert (writer.flag, writer.name, writer.env_kwargs) == ("env", "rts_mini", env_kwargs)


def test_a_file_that_is_trusted_is_used():
    Path("planted.py").write_text("from sf.envs.toys.single import Identity as Env\n")
    write_run("theirs", {"env": "planted:Env"})
    assert load_policy("theirs", trust=True).env_id == "planted:Env"
    with contextlib.redirect_stdout(None):
        assert run("sf.tools.commands.evaluate", [*COMMANDS["sf-eval"][1], "--trust", "true"]) == 0
    config = make_config(experiment="theirs", train_dir=".", trust=True)
    assert (config.run.env, config.run.trust) == ("planted:Env", True)


def test_what_is_named_on_the_command_line_too_needs_no_trust():
    write_run("theirs", {"env": "planted:Env", "encoder": "planted:Net"})
    named = {"env": "planted:Env", "encoder": "planted:Net", "experiment": "theirs", "train_dir": "."}
    assert make_config(**named).run.env == "planted:Env"
    assert make_config(**{**named, "encoder": "mlp"}).model.encoder == "mlp"
    del named["encoder"]
    with pytest.raises(ValueError, match="names encoder 'planted:Net'"):
        make_config(**named)


@pytest.mark.parametrize(
    "what",
    [
        *(f"{code} beside it" for code in ("an environment", "a wrapper", "an encoder", "a model", "a player")),
        "a player that is a program",
    ],
)
def test_the_command_line_vouches_for_what_it_names(what):
    write_run("theirs", PAYLOADS[what])
    (flag, value), *_ = PAYLOADS[what].items()
    words = [f"--{flag}", *([value] if isinstance(value, str) else value)]
    assert cli.starting_config([*words, "--experiment", "theirs", "--train_dir", "."]).flat()[flag]
    with pytest.raises(SystemExit):
        cli.starting_config(["--experiment", "theirs", "--train_dir", "."])


def test_a_program_that_is_known_in_one_folder_is_not_known_in_another(tmp_path, monkeypatch):
    flags = {"env": "openspiel:go", "players": ("gtp:./engine",)}
    remember_code(named_code(flags))
    require_trusted(flags, "a file", is_trusted=False)
    Path("elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"names players 'gtp:\./engine'"):
        require_trusted(flags, "a file", is_trusted=False)


@pytest.mark.parametrize("command", ["sf-train", "sf-eval"])
def test_code_in_a_file_of_tasks_is_not_trusted_because_the_user_names_the_file(command, capsys):
    Path("theirs.yaml").write_text("tasks: [toy_identity, 'planted:Env']")
    words = ["--env", "tasks:theirs.yaml", "--experiment", "new", "--train_dir", "."]
    if command == "sf-eval":
        write_run("theirs", {"env": "tasks:theirs.yaml"})
        words = COMMANDS[command][1]
    said = refused(capsys, COMMANDS[command][0], words)
    assert not Path(MARKER).exists()
    assert "names tasks 'planted:Env': that is code" in said
    assert "--trust true" in said
    assert make_config(env="tasks:theirs.yaml", trust=True).run.env == "tasks:theirs.yaml"
