"""A checkpoint that cannot be read gets one sentence, whoever is given it."""

import importlib
import json
import math
import os
import sys
from pathlib import Path

import pytest
import torch
from untrained import untrained

from sf import load_policy
from sf.storage import checkpoint
from sf.storage.checkpoint import MODEL, Checkpoint
from sf.storage.run_dir import RunDir

FILE = "run/checkpoints/checkpoint_000001_000000001234.safetensors"


def write(tensors=None, **state):
    """A run whose checkpoint differs from a whole one in these entries; None: it lacks them."""
    whole = untrained("toy_identity")
    changed = {name: value for name, value in {**whole.state, **state}.items() if value is not None}
    RunDir(Path("run")).checkpoints.mkdir(parents=True)
    Path("run/config.yaml").write_text("env: toy_identity\n")
    Path(FILE).write_bytes(checkpoint.encode(Checkpoint(whole.tensors if tensors is None else tensors, changed)))


def with_config(**flags):
    write(config={**untrained("toy_identity").state["config"], **flags})


def replaced_by(make):
    write()
    Path(FILE).unlink()
    make(Path(FILE))


def with_text(text):
    """A file with a right checksum, and this where a learner writes JSON."""
    write()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json, "dumps", lambda value: text)
        Path(FILE).write_bytes(checkpoint.encode(Checkpoint({"a": torch.zeros(1)}, {})))


def cut_off():
    write()
    Path(FILE).write_bytes(Path(FILE).read_bytes()[:-100])


def without(part):
    write({name: tensor for name, tensor in untrained("toy_identity").tensors.items() if part not in name})


BROKEN = {
    "a truncated file": cut_off,
    "a directory in its place": lambda: replaced_by(Path.mkdir),
    "a pipe in its place": lambda: replaced_by(os.mkfifo),
    "a link to nothing": lambda: replaced_by(lambda path: path.symlink_to("nowhere")),
    "no JSON": lambda: with_text("{"),
    "JSON without an end": lambda: with_text("[" * 100_000),
    "no configuration": lambda: write(config=None),
    "a configuration of another kind": lambda: write(config=[1, 2]),
    "a flag of another kind": lambda: with_config(rnn_size="wide"),
    "a flag of a later version": lambda: with_config(of_tomorrow=3),
    "no env steps": lambda: write(env_steps=None),
    "a space of another kind": lambda: write(action_space=[]),
    "a space that lacks a part": lambda: write(obs_space={"type": "Box", "low": 0}),
    "a space of impossible numbers": lambda: write(obs_space={**BOX, "low": "small"}),
    "a space beyond all memory": lambda: write(obs_space={**BOX, "shape": [10**15]}),
    "no weights": lambda: write({"rng": torch.zeros(3)}),
    "a missing weight": lambda: without("value"),
    "a weight of another shape": lambda: write(
        {
            name: torch.zeros(3, 3) if name.startswith(MODEL) else t
            for name, t in untrained("toy_identity").tensors.items()
        }
    ),
}
BOX = {"type": "Box", "low": -1.0, "high": 1.0, "shape": [4], "dtype": "float32"}

COMMANDS = {
    "sf-eval": ("sf.tools.commands.evaluate", ["--num_workers", "1", "--episodes", "1"]),
    "sf-enjoy": ("sf.tools.commands.enjoy", ["--video", "out.gif", "--episodes", "1"]),
    "sf-export": ("sf.tools.commands.export", ["--out", "out.pt2"]),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refusal(program, path, capsys):
    """The one sentence of a command that ends with status 2."""
    module, words = COMMANDS[program]
    main = importlib.import_module(module).main
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [program, path, *words])
        with pytest.raises(SystemExit) as end:
            main()
    lines = capsys.readouterr().err.strip().splitlines()
    assert end.value.code == 2
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    return lines[-1]


@pytest.mark.parametrize("what", BROKEN)
def test_a_policy_that_cannot_be_loaded_is_a_value_error(what):
    BROKEN[what]()
    for path in ("run", FILE):
        with pytest.raises(ValueError) as refusal:
            load_policy(path, say=lambda text: None)
        assert "run" in str(refusal.value)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("what", ["a link to nothing", "a directory in its place", "a flag of another kind"])
@pytest.mark.parametrize("program", COMMANDS)
def test_every_command_says_so_in_one_sentence(program, what, capsys):
    BROKEN[what]()
    for path in ("run", FILE):
        assert "run" in refusal(program, path, capsys)


def test_of_several_checkpoints_one_that_can_be_read_is_taken(capsys):
    write()
    older = Path(FILE).read_bytes()
    for number, make in enumerate((Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")), start=2):
        make(Path(FILE.replace("000001", f"{number:06}", 1)))
    said = []
    assert load_policy("run", say=said.append).name == FILE
    assert len(said) == 3
    assert Path(FILE).read_bytes() == older


@pytest.mark.parametrize("score", ["high", None, [1], math.nan])
def test_a_best_checkpoint_without_a_score_is_not_the_best(score):
    write(score=score)
    os.rename(FILE, Path(FILE).with_name("best_000000001234.safetensors"))
    if isinstance(score, float):
        assert load_policy("run", which="best").env_steps == 1234
    else:
        with pytest.raises(ValueError, match="no best checkpoint yet"):
            load_policy("run", which="best")


def test_what_may_not_be_read_is_named(monkeypatch):
    write()

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)  # root, whom no mode of a file keeps out, runs tests too
    for path in ("run", FILE):
        with pytest.raises(ValueError, match=r"run.* cannot be read"):
            load_policy(path)


def test_a_run_that_does_not_say_how_many_policies_it_has_is_named():
    write()
    for num in ("two", 0, 1.5):
        Path("run/config.yaml").write_text(f"env: toy_identity\nnum_policies: {num}\n")
        with pytest.raises(ValueError, match=r"run/config\.yaml.*num_policies"):
            load_policy("run")
