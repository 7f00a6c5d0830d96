"""The folder of a policy and its card: what they hold, and that the policy in it plays as before."""

import errno
import json
import os
import shlex
from pathlib import Path

import pytest
import torch
import yaml
from untrained import untrained

from sf import load_policy
from sf.config import Config
from sf.evaluation.play.episodes import Played, make_lineups
from sf.evaluation.results import Evaluation
from sf.storage import best_checkpoint, checkpoint
from sf.storage.run_dir import RunDir
from sf.storage.zoo.folder import CARD, CONFIG, WEIGHTS, without_training_state
from sf.tools.commands import evaluate, export
from sf.tools.export import policy_folder
from sf.tools.export.card import changed_flags

START = {
    "started_at": "2026-01-02T03:04:05+00:00",
    "command": "/home/ann/.venv/bin/sf-train --env toy_identity --seed 3",
    "host": "machine-of-ann",
    "cpu": "A CPU",
    "usable_cores": 2,
    "gpus": [],
    "python": "3.11.7",
    "versions": {"sf-appo": "0.1.0", "torch": "2.13.0"},
    "commit": "0123456789abcdef0123456789abcdef01234567",
}


@pytest.fixture
def run(tmp_path, monkeypatch, request):
    """A run directory, as if it had been trained; of the environment that a test names as its parameter."""
    monkeypatch.chdir(tmp_path)
    directory = RunDir(Path("train_dir/mine"))
    env = getattr(request, "param", "toy_identity")
    saved = untrained(env, seed=3, rollout=16, train_dir="/home/ann/runs")
    saved.tensors["optimizer/step"] = torch.zeros(())
    checkpoint.save(directory.checkpoints, saved, 1234, keep=1)
    directory.config.write_text(yaml.safe_dump(json.loads(json.dumps(saved.state["config"]))))
    directory.system.write_text(json.dumps([START]))
    return directory.path


@pytest.fixture
def _scored(monkeypatch):
    """The policy is not played: it is said to have had returns of 0, 1, 2..."""

    def evaluate(task, on_progress):
        return Evaluation(task.objective, [Played(n, 0, 0, float(n), 8, 8, {}) for n in range(task.num_episodes)])

    monkeypatch.setattr(policy_folder, "evaluate", evaluate)


def front_matter(text):
    start, matter, body = text.split("---\n", maxsplit=2)
    assert start == ""
    return yaml.safe_load(matter), body


@pytest.mark.usefixtures("_scored")
def test_a_folder_plays_like_the_run_and_its_card_says_how_it_came_to_be(run, status_of, capsys):
    words = ("--out", "zoo/my own", "--card", "--episodes", "4", "--license", "mit")
    assert status_of(export.main, run, *words) == 0, capsys.readouterr().err
    assert "folder: zoo/my own, to play: sf-enjoy 'zoo/my own'\n" in capsys.readouterr().out
    assert f"sf-enjoy {run}" in (run / CARD).read_text()  # a card of the run beside the folder
    folder = Path("zoo/my own")
    assert {path.name for path in folder.iterdir()} == {CARD, CONFIG, WEIGHTS}
    saved = checkpoint.load(folder / WEIGHTS)
    assert all(name.startswith("model/") for name in saved.tensors)
    assert "/home/ann" not in "".join(map(str, (saved.state, *(path.read_bytes() for path in folder.iterdir()))))
    assert load_policy("zoo/my own").env_steps == load_policy(run).env_steps == 1234

    matter, body = front_matter((folder / CARD).read_text())
    assert matter["library_name"] == "sf-appo"
    assert matter["license"] == "mit"
    assert "toy_identity" in matter["tags"]
    [result] = matter["model-index"][0]["results"]
    assert result["dataset"]["name"] == "toy_identity"
    assert result["metrics"][0]["type"] == "mean_reward"
    said = [
        "sf-train --env toy_identity --seed 3\n",
        START["commit"],
        "A CPU, 2 cores",
        "torch 2.13.0",
        "| env steps | 1,234 |",
        "95 % interval",
        "sf-enjoy 'zoo/my own'",
        "| `rollout` | `16` | `32` |",
    ]
    assert [text for text in said if text not in body] == []
    assert START["host"] not in body


@pytest.mark.parametrize("run", ["toy_match_rps"], indirect=True)
@pytest.mark.parametrize("others_get", [-1.0, 1.0, 0.9], ids=["zero sum", "shared", "nearly shared"])
def test_the_card_of_a_game_has_the_win_rate_against_random_moves_by_seat(run, others_get, status_of, monkeypatch):
    has_winners = others_get < 0

    def evaluate(task, on_progress):
        """The policy scores in seat 0 and not in seat 1, and the other agent gets this share of its score."""
        lineups = make_lineups(len(task.players), 2, task.num_episodes, task.seed)
        won = [float(tuple(lineup) == (0, 1)) for lineup in lineups]
        scores = [(score, others_get * score) for score in won]
        return Evaluation(
            task.objective,
            [
                Played(match, agent, int(lineup[agent]), scores[match][agent], 8, 8, {})
                for match, lineup in enumerate(lineups)
                for agent in range(2)
            ],
        )

    monkeypatch.setattr(policy_folder, "evaluate", evaluate)
    assert status_of(export.main, run, "--out", "mine", "--episodes", "8", "--deterministic", "true") == 0
    matter, body = front_matter(Path("mine", CARD).read_text())
    [result] = matter["model-index"][0]["results"]
    metrics = {metric["type"]: metric["value"] for metric in result["metrics"]}
    if not has_winners:
        assert list(metrics) == ["mean_reward"]
        assert "random" not in body
        return
    assert metrics == {"win_rate_against_random": 0.75, "mean_reward": "0.00 +/- 0.00"}
    assert "75.0% (95 % interval: 40.9% to 92.9%): 4 won, 4 drawn, 0 lost" in body
    assert [line[:30] for line in body.splitlines() if line.startswith(("| all", "| 0", "| 1"))] == [
        "| all | 4 | 4 | 0 | 75.0% | 40",
        "| 0 | 4 | 0 | 0 | 100.0% | 51.",
        "| 1 | 0 | 4 | 0 | 50.0% | 15.0",
    ]
    assert "mean return" not in body


@pytest.mark.long
@pytest.mark.parametrize("run", ["toy_identity", "toy_match_rps"], indirect=True)
def test_the_command_in_a_card_gives_the_score_in_the_card(run, status_of):
    assert status_of(export.main, run, "--out", "mine", "--episodes", "7") == 0
    text = Path("mine", CARD).read_text()
    is_game = "--against random" in text
    commands = [line for line in text.splitlines() if line.startswith("sf-eval mine") and "--episodes" in line]
    [typed] = [line for line in commands if line.endswith("--against random") == is_game]
    assert status_of(evaluate.main, *shlex.split(typed)[1:], "--json", "score.json") == 0
    found = json.loads(Path("score.json").read_text())
    statistics = found["policies"][0]["statistics"]["return"]
    matter, _ = front_matter(text)
    value = matter["model-index"][0]["results"][0]["metrics"][0]["value"]
    assert value == (
        round(found["win_rate"], 4) if is_game else f"{statistics['mean']:.2f} +/- {statistics['std']:.2f}"
    )


@pytest.mark.usefixtures("_scored")
def test_the_card_of_a_run_is_its_readme_and_is_written_again_but_never_over_that_of_the_user(run, status_of, capsys):
    words = (run, "--card", "--episodes", "2")
    for _ in range(2):
        assert status_of(export.main, *words) == 0
    assert f"sf-enjoy {run}" in (run / CARD).read_text()
    assert "No licence is stated" in (run / CARD).read_text()
    (run / CARD).write_text("my notes")
    assert status_of(export.main, *words) == 2
    assert "written by sf-export" in capsys.readouterr().err
    assert (run / CARD).read_text() == "my notes"
    (run / CARD).unlink()
    (run / CARD).mkdir()
    assert status_of(export.main, *words) == 2
    assert "name --out FOLDER without --card" in capsys.readouterr().err


@pytest.mark.usefixtures("_scored")
def test_a_card_names_the_policy_that_it_scores(run, status_of):
    saved = checkpoint.load(next((run / "checkpoints").glob("checkpoint_*")))
    best = best_checkpoint.save_best(run / "checkpoints", saved, 1.0)
    assert status_of(export.main, run, "--card", "--episodes", "2", "--checkpoint", "best") == 0
    card = (run / CARD).read_text()
    assert f"sf-eval {best} --episodes 2" in card
    assert f'load_policy("{best}")' in card


def test_a_link_in_the_place_of_a_card_or_a_part_of_a_folder_is_not_followed(run, tmp_path, status_of, capsys):
    target = tmp_path / "authorized_keys"
    folder = tmp_path / "folder"
    folder.mkdir()
    for link, words in ((run / CARD, ["--card"]), (folder / WEIGHTS, ["--out", folder])):
        link.symlink_to(target)
        assert status_of(export.main, run, *words, "--episodes", 1) == 2
        assert f"{link.name} is a link" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize("name", [CARD, WEIGHTS])
def test_a_folder_with_other_things_in_it_is_left_alone(run, name, status_of, capsys):
    Path("thesis").mkdir()
    Path("thesis", name).write_text("a year of work")
    assert status_of(export.main, run, "--out", "thesis", "--episodes", "2") == 2
    assert "thesis exists" in capsys.readouterr().err
    assert Path("thesis", name).read_text() == "a year of work"


@pytest.mark.usefixtures("_scored")
def test_a_full_disk_leaves_an_earlier_folder_with_its_card(run, monkeypatch, capsys, status_of):
    words = (run, "--out", "mine", "--episodes", "2")
    assert status_of(export.main, *words) == 0
    before = {path.name: path.read_bytes() for path in Path("mine").iterdir()}
    fsync, synced = os.fsync, []

    def full_after_the_weights(fd):
        if synced:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced.append(fd)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", full_after_the_weights)
    assert status_of(export.main, *words, "--precision", "bfloat16") == 2
    assert "cannot be written (No space left on device)" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("mine").iterdir()} == before
    assert status_of(export.main, "mine", "--card", "--out", "other", "--episodes", "2") == 2
    assert "card is true, but mine" in capsys.readouterr().err
    Path("mine", CARD).write_text("# My notes")
    assert status_of(export.main, *words) == 2
    assert "written by sf-export" in capsys.readouterr().err
    assert Path("mine", CARD).read_text() == "# My notes"


def test_a_policy_of_a_source_that_has_one_is_refused(run, status_of, capsys):
    file = next((run / "checkpoints").glob("checkpoint_*"))
    assert status_of(export.main, file, "--out", "mine.pt2", "--policy", 4) == 2
    assert f"policy is 4, but {file} is a checkpoint" in " ".join(capsys.readouterr().err.split())
    for source in (file, "mine.onnx"):
        with pytest.raises(ValueError, match="policy_id is 4"):
            load_policy(source, policy_id=4)
    assert load_policy(file, policy_id=0).env_steps == 1234


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to write"),
        (["--out", "policy.onx"], "its name must end with .onnx or .pt2"),
        (["--out", "a.onnx", "--precision", "bfloat16"], "precision is bfloat16"),
        (["--out", "a.pt2", "--license", "mit"], "license is mit"),
        (["--private", "--card"], "private is true"),
        (["--hub", "ann"], "hub is 'ann'"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(run, words, sentence, status_of, capsys):
    assert status_of(export.main, run, *words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_bfloat16_halves_the_weights_and_leaves_the_statistics_of_normalisers_alone():
    saved = untrained("CartPole-v1", encoder_mlp_layers=(64, 64))
    whole, half = without_training_state(saved), without_training_state(saved, "bfloat16")
    weights = "model/trunk.actor.encoders.0.linear.2.weight"
    assert (whole.tensors[weights].dtype, half.tensors[weights].dtype) == (torch.float32, torch.bfloat16)
    assert half.tensors["model/obs_norm.normalizers.0.moments.var"].dtype == torch.float64
    assert len(checkpoint.encode(half)) < 0.7 * len(checkpoint.encode(whole))


def test_flags_that_differ_from_the_preset_are_told_from_those_that_it_sets():
    preset, changed = changed_flags({**untrained("CartPole-v1").state["config"], "config": "fast"})
    assert preset == "fast"
    assert changed["encoder_mlp_layers"] == ((64, 64), (16,))
    assert changed["learning_rate"] == (0.001, Config().learner.learning_rate)
    assert not {"env", "config", "train_dir"} & changed.keys()
    assert changed_flags(Config().replace(env="toy_identity", config="/home/ann/mine.yaml").flat()) == (None, {})


def test_what_a_run_has_chosen_for_auto_is_no_difference_from_the_preset():
    flags = {**untrained("CartPole-v1").state["config"], "config": "vector", "rollout": 32, "batch_size": 512}
    as_named = {**flags, "rollout": "auto"}
    assert {"rollout", "batch_size"} <= changed_flags(flags)[1].keys()
    changed = changed_flags(flags, as_named)[1]
    assert "rollout" not in changed
    assert changed["batch_size"] == ("auto", 512)
