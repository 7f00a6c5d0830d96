"""What cannot be is one sentence before anything starts."""

import json
import shutil
from pathlib import Path

import pytest
from untrained import untrained

from sf.config import Config
from sf.league import record
from sf.league.players.snapshots import Snapshots
from sf.league.record import Player, Reference
from sf.run.planning import make_plan
from sf.storage import checkpoint

DUEL = {"env": "toy_match_rps", "past_share": 0.2, "device": "cpu"}


EXPLOITED = {"exploiters": 1, "num_policies": 2}
MIXED = {"players": ("random",), "opponent_weights": (1.0,)}


@pytest.mark.parametrize(
    "flags",
    [
        {"past_share": 1.5},
        {"seats": 10**12},
        {"snapshot_at_win_rate": 0.4},
        {"snapshot_every_env_steps": 0},  # and there are no players
        {"past_share": 0.0, "players": ("random",)},
        {"reference_ratings": "r.json"},  # without players
        {"opponent_weights": (0.5, 0.5), "players": ("random",)},
        {"opponent_weights": (1e308, 1e308), "players": ("random", "a:b")},
        {"exploiters": 1},  # of one policy
        {**EXPLOITED, "past_share": 1.0},
        {**EXPLOITED, **MIXED},
        {"exploiters": 1, "num_policies": 3, "with_pbt": True},
        {"exploiter_win_rate": 0.5},
        {"snapshot_at_win_rate": 0.6, **MIXED},
        {"snapshot_at_win_rate": 0.6, "players": ("random",), "snapshot_every_env_steps": 0},
        {"past_share": 0.2, "async_rl": False},
    ],
)
def test_flags_that_do_not_go_together(flags):
    with pytest.raises(ValueError, match=f"{next(iter(flags))} (is|has|must)"):
        Config().replace(**{**DUEL, **flags})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"env": "toy_identity"}, "past_share is 0.2"),
        ({"players": ("nowhere",)}, "players names .nowhere"),
        ({"players": ("n" * 300,)}, "File name too long"),
        ({"players": ("stubborn:NeedsMore",)}, "without arguments: TypeError"),
        ({"players": ("stubborn:two",)}, "cannot be asked for a move .*'step'"),
        ({"players": ("stubborn:nobody",)}, "no function nobody"),
        ({"players": ("random", "random")}, "players names 'random' twice"),
        ({"players": ("zoo/CartPole-v1",)}, "players names 'zoo/CartPole-v1'"),
    ],
)
def test_players_that_cannot_play(flags, said):
    with pytest.raises(ValueError, match=said):
        make_plan(Config().replace(**{**DUEL, **flags}))


def test_players_have_seats_for_each_policy_and_a_mixture_one_for_each_player():
    assert make_plan(Config().replace(**DUEL, num_policies=3, seats=4)).num_seats == 12
    assert make_plan(Config().replace(**DUEL, num_policies=3, seats=4, exploiters=1)).num_seats == 8
    players = ("stubborn:Stubborn", "stubborn:with_a_step")  # a function with the rest of its arguments bound
    plan = make_plan(Config().replace(**DUEL, players=players, opponent_weights=(1.0, 3.0)))
    assert plan.num_seats == 2
    assert list(plan.entrants) == list(players)
    assert make_plan(Config().replace(env="toy_match_rps")).num_seats == 0


def test_a_league_is_of_teams_of_one_size_unless_they_are_mixed():
    four = Config().replace(**{**DUEL, "env": "toy_match_counting", "env_kwargs": '{"num_agents": 4}'})
    assert make_plan(four.replace(teams=[["agent_[03]"], ["agent_[12]"]])).sides == (0, 1, 1, 0)
    uneven = four.replace(teams=[["agent_0"], ["agent_[123]"]])
    with pytest.raises(ValueError, match=r"past_share .*mix_teams"):
        make_plan(uneven)
    assert make_plan(uneven.replace(mix_teams=True)).sides == (0, 1, 2, 3)
    assert make_plan(uneven.replace(past_share=0.0)).sides == (0, 1, 1, 1)


def test_a_player_whose_original_is_gone_is_the_copy_in_the_directory_of_the_run(tmp_path, capsys):
    original, name = tmp_path / "runs" / "good.safetensors", "runs_good"
    flags = {**DUEL, "players": (str(original),), "train_dir": str(tmp_path), "experiment": "run"}
    original.parent.mkdir()
    saved = untrained(DUEL["env"])
    checkpoint.write(original, saved)
    assert list(make_plan(Config().replace(**flags)).entrants) == [name]
    Snapshots(tmp_path / "run", []).keep(name, saved)  # as a run does when it begins
    original.unlink()
    entrant = make_plan(Config().replace(**flags)).entrants[name]
    assert f"{name}.safetensors plays in its place" in capsys.readouterr().err
    assert entrant.state["env_steps"] == saved.state["env_steps"]
    with pytest.raises(ValueError, match="is neither a checkpoint nor"):
        make_plan(Config().replace(**{**flags, "experiment": "another"}))


def test_a_reference_pool_knows_policies_by_their_weights_and_others_by_their_names(tmp_path):
    saved = untrained(DUEL["env"])
    checkpoint.write(tmp_path / "renamed.safetensors", saved)
    checkpoint.write(tmp_path / "other.safetensors", untrained(DUEL["env"], seed=1))
    rated = [("random", 1, None), ("runs/good", 2, checkpoint.weights_of(saved)), ("a_function:f", 3, None)]
    players = [{"name": name, "rating": {"mean": rating}, "weights": weights} for name, rating, weights in rated]
    (tmp_path / "pool.json").write_text(json.dumps({"env": DUEL["env"], "players": players}))
    (tmp_path / "no_json").write_text("{")
    (tmp_path / "of_another.json").write_text(json.dumps({"env": "toy_match_pennies", "players": players}))
    renamed, other = str(tmp_path / "renamed.safetensors"), str(tmp_path / "other.safetensors")

    def plan(file, *named):
        flags = {**DUEL, "players": named, "reference_ratings": str(tmp_path / file), "train_dir": str(tmp_path)}
        return make_plan(Config().replace(**flags))

    found = plan("pool.json", "random", renamed, other)
    assert [*found.reference.values()] == [1.0, 2.0]
    assert "random" in found.reference
    assert {*found.reference} < {*found.entrants}
    for file, message in (
        ("pool.json", "pool.json rates"),
        ("no_json", "no_json has no ratings"),
        ("of_another.json", "toy_match_pennies"),
        ("nowhere.json", "no such file"),
    ):
        with pytest.raises(ValueError, match=message):
            plan(file, other)


def test_who_has_joined_a_run_is_held_as_it_was_then(tmp_path, capsys):
    """Its copy plays on, whatever becomes of the original, and of --players."""
    original, earlier, later = tmp_path / "good.safetensors", *(untrained(DUEL["env"], seed=seed) for seed in (0, 1))
    run_dir = tmp_path / "run"
    name = find_name(original)
    joined = [Player("random"), Snapshots(run_dir, []).keep_entrant(name, earlier)]
    record.append(run_dir / record.NAME, [*joined, Reference({"own:x": 900.0})])
    players = [{"name": "random", "rating": {"mean": 250}}]
    players += [{"name": "x", "rating": {"mean": 700}, "env_steps": 3, "weights": checkpoint.weights_of(earlier)}]
    (tmp_path / "pool.json").write_text(json.dumps({"players": players}))
    checkpoint.write(original, later)

    def reference(named, file, **flags):
        common = {"reference_ratings": str(tmp_path / file), "train_dir": str(tmp_path), "experiment": "run"}
        return make_plan(Config().replace(**{**DUEL, "players": named, **common, **flags})).reference

    assert reference((str(original), "random"), "pool.json") == {name: 700.0, "random": 250.0}
    assert "whose weights have changed since it joined" in capsys.readouterr().err
    assert reference(("random",), "pool.json") == {name: 700.0, "random": 250.0}
    assert reference((str(original), "random"), "pool.json", restart_behavior="restart") == {"random": 250.0}
    assert not capsys.readouterr().err
    assert reference(("random",), "gone.json") == {"own:x": 900.0}
    assert "which is gone" in capsys.readouterr().err
    with pytest.raises(ValueError, match="there is no such file"):  # the ratings of a run that is over
        reference(("random",), "gone.json", restart_behavior="overwrite")


def test_a_run_of_an_earlier_version_goes_on_with_the_policy_that_it_has_met(tmp_path):
    other, run_dir = tmp_path / "runs" / "other", tmp_path / "run"
    saved = [untrained(DUEL["env"], seed=seed) for seed in range(2)]
    for i, each in enumerate(saved):
        checkpoint.save(other / "checkpoints" / f"policy_{i:02d}", each, 10, keep=2)
    (other / "config.yaml").write_text(f"env: {DUEL['env']}\nnum_policies: 2\n")
    Snapshots(run_dir, []).keep("runs_other", saved[0])
    flags = {**DUEL, "players": (str(other),), "train_dir": str(tmp_path), "experiment": "run"}
    assert [*make_plan(Config().replace(**flags)).entrants] == ["runs_other"]
    flags["restart_behavior"] = "overwrite"
    assert [*make_plan(Config().replace(**flags)).entrants] == ["runs_other_policy_00", "runs_other_policy_01"]


def find_name(path):
    return "_".join(path.with_suffix("").parts[-2:])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("実験/方策.safetensors", "実験_方策"),
        ("._/_..safetensors", "player"),
        ("./policy_01_000000001024.safetensors", "player_policy_01_000000001024"),
        ("./beginning_01.safetensors", "player_beginning_01"),
    ],
)
def test_names_in_the_pool_are_none_of_the_run_itself_whatever_a_file_is_called(tmp_path, monkeypatch, path, name):
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(exist_ok=True)
    checkpoint.write(Path(path), untrained(DUEL["env"]))
    assert [*make_plan(Config().replace(**DUEL, players=(path,))).entrants] == [name]


def test_of_a_run_with_several_policies_all_play(tmp_path, capsys):
    other = tmp_path / "runs" / "other"
    flags = {**DUEL, "players": (str(other), "random"), "train_dir": str(tmp_path), "experiment": "run"}
    saved = {f"runs_other_policy_{i:02d}": untrained(DUEL["env"], seed=i, env_steps=i) for i in range(2)}
    for i, each in enumerate(saved.values()):
        checkpoint.save(other / "checkpoints" / f"policy_{i:02d}", each, 10, keep=2)
    (other / "config.yaml").write_text(f"env: {DUEL['env']}\nnum_policies: 2\n")
    entrants = make_plan(Config().replace(**flags)).entrants
    assert [*entrants] == [*saved, "random"]
    assert [entrants[name].state["env_steps"] for name in saved] == [0, 1]
    with pytest.raises(ValueError, match="opponent_weights"):
        make_plan(Config().replace(**flags, opponent_weights=(1.0, 1.0)))
    for name, each in saved.items():
        Snapshots(tmp_path / "run", []).keep(name, each)
    shutil.rmtree(other)
    assert [*make_plan(Config().replace(**flags)).entrants] == [*saved, "random"]
    assert capsys.readouterr().err.count("plays in its place") == 2
