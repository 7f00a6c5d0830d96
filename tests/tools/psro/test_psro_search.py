"""The search of sf-psro: whom a best response meets, what is written down, and how it goes on after a stop."""

import json
import sys

import pytest
import yaml

from sf.config import Config
from sf.config.older import BEFORE_THE_FLAG
from sf.envs import UsageError
from sf.storage import checkpoint, text_files
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli
from sf.tools.psro import best_response, command, judge
from sf.tools.psro import search as search_module
from sf.tools.psro.best_response import StoppedError
from sf.tools.psro.flags import default_end
from sf.tools.psro.record import Iteration, append, payoff_table, read
from sf.tools.psro.search import Search

ROCK_PAPER_SCISSORS = {"random": 0, "policy_001": 1, "policy_002": 2, "policy_003": 0}


class CyclicJudge:
    """Each player beats the one before it; the fourth is the first again."""

    def payoffs(self, name, players, others):
        own = ROCK_PAPER_SCISSORS[name]
        return [(0.0, 1.0, -1.0)[(own - ROCK_PAPER_SCISSORS[other]) % 3] for other in others]

    def exploitability(self, players, weights):
        assert set(weights) <= set(players)
        return 1.0 / len(players)


def new_search(tmp_path, solver="nash", is_warm=True, **settings):
    config = Config().replace(env="toy_match_rps", train_for_env_steps=1000)
    return Search(tmp_path / "search", config, CyclicJudge(), solver, is_warm, {"meta_solver": solver, **settings})


def mixtures(search):
    return [[round(share, 2) for share in iteration.mixture.values()] for iteration in search.iterations]


def test_what_cannot_be_written_or_read_is_one_sentence(tmp_path, trained):
    (tmp_path / "search").write_text("")
    with pytest.raises(UsageError, match=r"search cannot be written \(File exists\): change that.*command goes on"):
        list(new_search(tmp_path).run(1, print))
    (tmp_path / "search").unlink()
    (tmp_path / "search" / "psro.jsonl").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"psro.jsonl cannot be read \(Is a directory\): change that, or name another"):
        new_search(tmp_path)
    (tmp_path / "search" / "psro.jsonl").rmdir()
    (tmp_path / "search" / "policies").write_text("")
    with pytest.raises(UsageError, match=r"policies cannot be written \(File exists\)"):
        list(new_search(tmp_path).run(1, print))
    (tmp_path / "search" / "policies").unlink()
    list(new_search(tmp_path).run(1, print))
    checkpoint.write(tmp_path / "search" / "policies" / "policy_001.safetensors", Checkpoint({}, {}))
    with pytest.raises(UsageError, match=r"lacks env_steps or config.*: put it back, or name another --experiment"):
        new_search(tmp_path)


def test_each_best_response_meets_the_solution_of_the_game_before_it(tmp_path, trained):
    search = new_search(tmp_path)
    list(search.run(2, print))
    assert mixtures(search) == [[1.0], [0.0, 1.0], [0.33, 0.33, 0.33]]
    first, second = trained
    assert first.players.players == ("random",)
    assert first.run.init_from is None
    assert second.players.players == (str(tmp_path / "search" / "policies" / "policy_001.safetensors"),)
    assert second.players.opponent_weights == (1.0,)
    assert second.run.init_from == second.players.players[0]
    for config in trained:
        assert config.players.past_share == 1.0
        assert config.players.snapshot_every_env_steps == 0
        assert config.run.train_for_env_steps == 1000
    assert [iteration.env_steps for iteration in search.iterations] == [0, 1000, 2000]
    assert [iteration.exploitability for iteration in search.iterations] == [1.0, 0.5, 1 / 3]


@pytest.mark.parametrize(
    ("solver", "weights"), [("uniform", (1 / 3, 1 / 3, 1 / 3)), ("latest", (1.0,)), ("nash", (1 / 3, 1 / 3, 1 / 3))]
)
def test_solvers_choose_whom_it_meets(tmp_path, trained, solver, weights):
    list(new_search(tmp_path, solver, is_warm=False).run(3, print))
    assert trained[-1].players.opponent_weights == pytest.approx(weights, abs=1e-6)
    assert trained[-1].run.init_from is None


def test_the_search_goes_on_where_it_was_stopped(tmp_path, trained, monkeypatch):
    list(new_search(tmp_path).run(1, print))
    before = (tmp_path / "search" / "psro.jsonl").read_bytes()
    monkeypatch.setattr(best_response, "train", lambda config: {"stopped_by": "SIGINT"})
    with pytest.raises(StoppedError) as stopped:
        list(new_search(tmp_path).run(2, print))
    assert stopped.value.by == "SIGINT"
    assert (tmp_path / "search" / "psro.jsonl").read_bytes() == before
    monkeypatch.undo()
    again = new_search(tmp_path)
    assert [iteration.player for iteration in again.iterations] == ["random", "policy_001"]
    assert list(again.run(1, print)) == []  # there is nothing left to do


def test_a_best_response_that_was_trained_before_a_kill_is_not_trained_again(tmp_path, trained, monkeypatch):
    append_all = search_module.record.append

    def append_the_first(path, iteration):
        if iteration.iteration > 0:
            raise KeyboardInterrupt
        append_all(path, iteration)

    monkeypatch.setattr(search_module.record, "append", append_the_first)
    with pytest.raises(KeyboardInterrupt):
        list(new_search(tmp_path).run(1, print))
    assert len(trained) == 1
    monkeypatch.setattr(search_module.record, "append", append_all)
    search = new_search(tmp_path)
    assert len(list(search.run(1, print))) == 1
    assert len(trained) == 1
    assert (search.iterations[1].env_steps, search.iterations[1].seconds) == (1000, 3.0)


def test_a_response_of_another_search_is_not_taken(tmp_path, trained):
    list(new_search(tmp_path).run(2, print))
    config = RunDir.at(str(tmp_path / "search" / "responses"), "policy_001").config
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "players": ["a/policy_007.safetensors"]}))
    (tmp_path / "search" / "psro.jsonl").unlink()
    with pytest.raises(UsageError, match=r"was trained against policy_007.* 1.000, not against random 1.000: move it"):
        list(new_search(tmp_path).run(1, print))


def test_a_response_whose_configuration_is_gone_is_one_sentence(tmp_path, trained):
    list(new_search(tmp_path).run(1, print))
    run_dir = RunDir.at(str(tmp_path / "search" / "responses"), "policy_001")
    run_dir.config.unlink()
    (tmp_path / "search" / "psro.jsonl").unlink()
    with pytest.raises(
        UsageError, match=r"policy_001 has no config.yaml, .*: put that file back, or move the folder a"
    ):
        list(new_search(tmp_path).run(1, print))
    run_dir.path.rename(tmp_path / "away")
    run_dir.path.mkdir()
    (run_dir.path / ".config.yaml.123.tmp").write_text("")  # of a start that was killed
    assert len(list(new_search(tmp_path).run(1, print))) == 1
    assert len(trained) == 2


def test_a_run_that_ends_by_its_return_is_trained(tmp_path, trained, monkeypatch):
    train = best_response.train
    monkeypatch.setattr(best_response, "train", lambda config: {**train(config), "stopped_by": "stop_at_return"})
    assert len(list(new_search(tmp_path).run(1, print))) == 2


@pytest.mark.parametrize("is_there", [False, True], ids=["gone", "damaged"])
def test_a_policy_that_cannot_be_read_is_one_sentence(tmp_path, trained, is_there):
    list(new_search(tmp_path).run(1, print))
    path = tmp_path / "search" / "policies" / "policy_001.safetensors"
    path.unlink()
    if is_there:
        path.write_bytes(b"half of it")
    with pytest.raises(UsageError, match=r"the policy of iteration 1, cannot be read .*: put it back"):
        new_search(tmp_path)


def test_another_search_in_the_same_directory_is_refused(tmp_path, trained):
    list(new_search(tmp_path).run(1, print))
    with pytest.raises(ValueError, match=r"meta_solver is uniform, but the search in .* has nash: name another"):
        new_search(tmp_path, "uniform")


def row(number, payoffs):
    return Iteration(number, f"policy_{number:03d}", None, {}, payoffs, {}, None, 10 * number, 1.0, {})


def test_the_record_survives_a_kill_and_says_where_it_is_damaged(tmp_path):
    path = tmp_path / "psro.jsonl"
    assert read(path) == []
    rows = [row(0, []), row(1, [0.5]), row(2, [-0.25, 1.0])]
    append(path, rows[0])
    append(path, rows[1])
    with path.open("ab") as file:
        file.write(b'{"iteration": 2, "pla')
    assert read(path) == rows[:2]
    append(path, rows[2])
    assert read(path) == rows
    table = payoff_table([row.payoffs for row in rows])
    assert table.tolist() == [[0.0, -0.5, 0.25], [0.5, 0.0, -1.0], [-0.25, 1.0, 0.0]]
    whole = path.read_text()
    damages = [('"iteration": 1', '"iteration": 7'), ('"payoffs": [0.5]', '"payoffs": ["0.5"]')]
    damages += [(line, "{}") for line in whole.splitlines()[1:2]] + [('"seconds": 1.0', '"seconds": null')]
    for before, after in damages:
        assert before in whole
        path.write_text(whole.replace(before, after))
        with pytest.raises(ValueError, match=r"psro.jsonl, line [12], is no iteration .*: restore the file"):
            read(path)


def run_command(monkeypatch, *words):
    from sf.tools.commands import entry_points  # noqa: PLC0415

    monkeypatch.setattr(sys, "argv", ["sf-psro", *words])
    try:
        entry_points.sf_psro()
    except SystemExit as end:
        return end.code or 0
    return 0


SMALL = ["--num_workers", "1", "--num_envs_per_worker", "8", "--rollout", "8", "--batch_size", "64", "--device", "cpu"]


@pytest.mark.long
def test_a_small_search_in_kuhn_poker_lowers_exploitability(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyspiel")
    out = tmp_path / "out.json"
    words = ["--env", "openspiel:kuhn_poker", "--train_dir", str(tmp_path), "--experiment", "kuhn", *SMALL]
    words += ["--num_epochs", "4", "--train_for_env_steps", "6000", "--iterations", "1", "--json", str(out)]
    assert run_command(monkeypatch, *words) == 0
    first, second = json.loads(out.read_text())
    assert first["exploitability"] == pytest.approx(0.4583, abs=1e-4)
    assert second["exploitability"] != first["exploitability"]
    assert second["payoffs"][0] > 0.1  # it beats random moves, exactly
    assert second["mixture"]["policy_001"] == pytest.approx(1.0)
    assert "iteration 1: exploitability" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--env", "toy_identity"], "env is toy_identity, of 1 agents"),
        (["--env", "openspiel:kuhn_poker", "--num_policies", "2"], "num_policies is 2: a response is one policy"),
        (["--env", "openspiel:kuhn_poker", "--async_rl", "false"], "async_rl is false: a response meets players"),
        (["--env", "openspiel:kuhn_poker", "--init_from", "x"], "init_from is x: --warm_start says what a response"),
        (["--env", "openspiel:kuhn_poker", "--restart_behavior", "restart"], "the same command goes on where it was"),
        (["--env", "openspiel:kuhn_poker", "--past_share", "0.2"], "past_share is 0.2: sf-psro itself says"),
        (
            ["--env", "openspiel:kuhn_poker", "--snapshot_every_env_steps", "9"],
            "snapshot_every_env_steps is 9: sf",
        ),
        (["--env", "openspiel:kuhn_poker", "--iterations", "0"], "iterations is 0: at least 1"),
        (["--env", "openspiel:kuhn_poker", "--png", "a.txt"], "png is a.txt: its name must end with .png"),
        (["--env", "openspiel:kuhn_poker", "--matches", "5"], "matches is 5: an even number"),
        (["--env", "openspiel:kuhn_poker", "--meta_solver", "best"], "meta_solver"),
        (["--env", "openspiel:coop_box_pushing"], "no zero-sum game"),
        (["--env", "toy_match_rps", "--share_reward", "true"], "share_reward is true, so nobody wins"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyspiel")
    assert run_command(monkeypatch, "--train_dir", str(tmp_path), "--experiment", "x", *words) == 2
    assert sentence in capsys.readouterr().err


def test_ctrl_c_in_the_matches_says_that_the_command_goes_on(tmp_path, monkeypatch, capsys):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(judge.ByMatches, "payoffs", interrupted)
    words = ["--env", "toy_match_rps", "--train_for_env_steps", "500", "--train_dir", str(tmp_path)]
    assert run_command(monkeypatch, *words, *SMALL) == 130
    assert "stopped after 0 iterations: the same command goes on" in capsys.readouterr().out


def test_a_length_in_frames_takes_the_place_of_the_default():
    assert default_end(["--env", "toy_match_rps"], 100) == {"train_for_env_steps": 100}
    for words in (["--train_for_env_frames", "5"], ["--train-for-env-steps=5"]):
        assert default_end(words, 100) == {}


def test_a_record_that_cannot_be_written_is_one_sentence(tmp_path, trained, monkeypatch):
    def full(path, line):
        raise OSError("No space left on device")

    monkeypatch.setattr(text_files, "append", full)
    with pytest.raises(UsageError, match=r"psro.jsonl cannot be written .*: change that.* the same command goes on"):
        list(new_search(tmp_path).run(1, print))


def test_a_run_of_sf_train_in_the_place_of_a_search_is_one_sentence(tmp_path, monkeypatch, capsys):
    RunDir.at(str(tmp_path), "x").prepare(Config().replace(env="toy_match_rps", past_share=0.2))
    for more in ([], ["--config", "vector"]):
        words = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "x", *more]
        assert run_command(monkeypatch, *words) == 2
        assert "x is a run of sf-train, and no search: name another --experiment" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_the_picture_is_in_the_format_that_its_name_ends_with(name, start, tmp_path, trained, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(command, "_line", lambda iteration: "")
    monkeypatch.setattr(judge, "judge_of", lambda *args: CyclicJudge())
    words = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--iterations", "1", "--png", str(tmp_path / name)]
    assert run_command(monkeypatch, *words) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_search_that_was_begun_with_an_odd_number_of_matches_goes_on(tmp_path, trained, monkeypatch, capsys):
    monkeypatch.setattr(command, "_line", lambda iteration: "")
    monkeypatch.setattr(judge, "judge_of", lambda *args: CyclicJudge())
    words = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "search"]
    assert run_command(monkeypatch, *words, "--iterations", "1", "--matches", "4") == 0
    path = tmp_path / "search" / "psro.jsonl"
    path.write_text(path.read_text().replace('"matches": 4', '"matches": 5'))
    for number, sentence in (("4", "matches is 4, but the search in"), ("7", "matches is 7: an even number")):
        assert run_command(monkeypatch, *words, "--iterations", "2", "--matches", number) == 2
        assert sentence in capsys.readouterr().err
    assert run_command(monkeypatch, *words, "--iterations", "2", "--matches", "5") == 0
    assert len(trained) == len(read(path)) - 1 == 2


def test_the_next_responses_are_like_those_that_are_there(tmp_path):
    args = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "search"]
    assert command._of_the_responses(args) == {}
    responses = RunDir.at(str(tmp_path), "search").path / "responses"
    for number, width in ((1, 16), (2, 24)):
        run_dir = RunDir.at(str(responses), f"policy_{number:03d}")
        flags = {"encoder_mlp_layers": (width,), "gamma": 0.9, "env_frameskip": 2, "pbt_target_objective": "frags"}
        run_dir.prepare(Config().replace(env="toy_match_rps", **flags))
    saved = yaml.safe_load(run_dir.config.read_text())
    run_dir.config.write_text(yaml.safe_dump({k: v for k, v in saved.items() if k not in BEFORE_THE_FLAG}))
    config = cli.starting_config(args, command._of_the_responses(args))
    assert (config.model.encoder_mlp_layers, config.learner.gamma, config.model.any_planes) == ((24,), 0.9, False)
    assert (config.environment.env_frameskip, config.population.pbt_target_objective) == (2, "frags")
    assert (config.run.experiment, config.run.init_from) == ("search", None)
    assert command._of_the_responses([*args, "--config", "vector"]) == {}


def test_code_that_a_response_names_is_not_run_unasked(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(str(tmp_path))
    args = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "search"]
    run_dir = RunDir.at(str(tmp_path / "search" / "responses"), "policy_001")
    run_dir.prepare(Config().replace(env="toy_match_rps"))
    saved = yaml.safe_load(run_dir.config.read_text())
    run_dir.config.write_text(yaml.safe_dump(saved | {"encoder": "theirs:Encoder"}))
    with pytest.raises(ValueError, match=r"names encoder 'theirs:Encoder': that is code.* add --trust true"):
        command._of_the_responses(args)
    assert command._of_the_responses([*args, "--trust", "true"])["encoder"] == "theirs:Encoder"
