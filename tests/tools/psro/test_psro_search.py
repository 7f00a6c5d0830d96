"""The search of sf-psro: whom a best response meets, what is written down, and how it goes on after a stop."""

import json

import pytest
import yaml

from sf.config import Config
from sf.config.older import BEFORE_THE_FLAG
from sf.envs import UsageError
from sf.evaluation.play.episodes import Played
from sf.evaluation.results import Evaluation
from sf.storage import checkpoint, text_files
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli
from sf.tools.psro import best_response, command, judge, record
from sf.tools.psro.flags import default_end
from sf.tools.psro.record import Iteration, SeatIteration, append, payoff_table, read
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


def test_a_damaged_policy_is_one_sentence(tmp_path, trained):
    list(new_search(tmp_path).run(1, print))
    checkpoint.write(tmp_path / "search" / "policies" / "policy_001.safetensors", Checkpoint({}, {}))
    with pytest.raises(UsageError, match="lacks env_steps or config"):
        new_search(tmp_path)
    (tmp_path / "search" / "policies" / "policy_001.safetensors").write_bytes(b"half of it")
    with pytest.raises(UsageError, match=r"the policy of iteration 1, cannot be read"):
        new_search(tmp_path)


def test_a_full_disk_is_one_sentence(tmp_path, trained, monkeypatch):
    def full(path, line):
        raise OSError("No space left on device")

    monkeypatch.setattr(text_files, "append", full)
    with pytest.raises(UsageError, match="No space left on device"):
        list(new_search(tmp_path).run(1, print))


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
    values = [(iteration.response_value, iteration.best_response_value) for iteration in search.iterations]
    assert values == [(None, None), (1.0, 1 / 2), (1.0, 1 / 3)]


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
    with pytest.raises(SystemExit) as stopped:
        list(new_search(tmp_path).run(2, print))
    assert stopped.value.code == 130
    assert (tmp_path / "search" / "psro.jsonl").read_bytes() == before
    monkeypatch.undo()
    again = new_search(tmp_path)
    assert [iteration.player for iteration in again.iterations] == ["random", "policy_001"]
    assert list(again.run(1, print)) == []  # there is nothing left to do


def test_a_best_response_that_was_trained_before_a_kill_is_not_trained_again(tmp_path, trained, monkeypatch):
    append_all = record.append

    def append_the_first(path, iteration):
        if iteration.iteration > 0:
            raise KeyboardInterrupt
        append_all(path, iteration)

    monkeypatch.setattr(record, "append", append_the_first)
    with pytest.raises(KeyboardInterrupt):
        list(new_search(tmp_path).run(1, print))
    assert len(trained) == 1
    monkeypatch.setattr(record, "append", append_all)
    search = new_search(tmp_path)
    assert len(list(search.run(1, print))) == 1
    assert len(trained) == 1
    assert (search.iterations[1].env_steps, search.iterations[1].seconds) == (1000, 3.0)


def test_what_another_search_has_left_is_not_taken(tmp_path, trained, monkeypatch):
    train = best_response.train
    monkeypatch.setattr(best_response, "train", lambda config: {**train(config), "stopped_by": "stop_at_return"})
    list(new_search(tmp_path).run(1, print))  # which ends by its return, and is trained
    with pytest.raises(ValueError, match=r"meta_solver is uniform, .* has nash"):
        new_search(tmp_path, "uniform")
    (tmp_path / "search" / "psro.jsonl").unlink()
    run_dir = RunDir.at(str(tmp_path / "search" / "responses"), "policy_001")
    flags = {**yaml.safe_load(run_dir.config.read_text()), "players": ["a/policy_007.safetensors"]}
    run_dir.config.write_text(yaml.safe_dump(flags))
    with pytest.raises(UsageError, match=r"policy_007.* 1.000, not against random 1.000"):
        list(new_search(tmp_path).run(1, print))
    run_dir.config.unlink()
    with pytest.raises(UsageError, match="policy_001 has no config"):
        list(new_search(tmp_path).run(1, print))
    run_dir.path.rename(tmp_path / "away")
    run_dir.path.mkdir()
    (run_dir.path / ".config.yaml.123.tmp").write_text("")  # of a start that was killed
    assert len(list(new_search(tmp_path).run(1, print))) == 1
    assert len(trained) == 2


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
    for before, after in (('"iteration": 1', '"iteration": 7'), (whole.splitlines()[1], "{}")):
        path.write_text(whole.replace(before, after))
        with pytest.raises(ValueError, match=r"psro.jsonl, line 2,"):
            read(path)


SMALL = ["--num_workers", "1", "--num_envs_per_worker", "8", "--rollout", "8", "--batch_size", "64", "--device", "cpu"]


@pytest.mark.long
def test_a_small_search_in_kuhn_poker_lowers_exploitability(tmp_path, status_of, capsys):
    pytest.importorskip("pyspiel")
    out = tmp_path / "out.json"
    words = ["--env", "openspiel:kuhn_poker", "--train_dir", str(tmp_path), "--experiment", "kuhn", *SMALL]
    words += ["--num_epochs", "4", "--train_for_env_steps", "6000", "--iterations", "1", "--json", str(out)]
    assert status_of(command.main, *words) == 0
    first, second = json.loads(out.read_text())
    assert first["exploitability"] == pytest.approx(0.4583, abs=1e-4)
    assert second["exploitability"] != first["exploitability"]
    assert second["payoffs"][0] > 0.1  # it beats random moves, exactly
    assert second["mixture"]["policy_001"] == pytest.approx(1.0)
    assert "iteration 1: exploitability" in capsys.readouterr().out


@pytest.mark.long
def test_a_small_search_by_seat_in_kuhn_poker_beats_random_moves_from_both_seats(tmp_path, status_of):
    pytest.importorskip("pyspiel")
    words = ["--env", "openspiel:kuhn_poker", "--train_dir", str(tmp_path), "--experiment", "kuhn", *SMALL]
    words += ["--population_per_seat", "true", "--train_for_env_steps", "6000", "--num_epochs", "4"]
    assert status_of(command.main, *words, "--iterations", "1") == 0
    _, response = read(tmp_path / "kuhn" / "psro.jsonl", SeatIteration)
    best = response.best_response_values
    assert best == {"agent_0": pytest.approx(0.5), "agent_1": pytest.approx(0.41667, abs=1e-4)}
    assert all(0.1 < won <= best[seat] for seat, won in response.response_values.items())


KUHN = "--env openspiel:kuhn_poker"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--env toy_identity", "env is toy_identity, of 1 agents"),
        (f"{KUHN} --async_rl false", "async_rl is false"),
        (f"{KUHN} --snapshot_every_env_steps 9", "snapshot_every_env_steps is 9"),
        (f"{KUHN} --png a.txt", "png is a.txt"),
        (f"{KUHN} --mix_teams true", "mix_teams is True"),
        ("--env toy_match_rps --share_reward true", "share_reward is all"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, message, tmp_path, status_of, capsys):
    pytest.importorskip("pyspiel")
    assert status_of(command.main, "--train_dir", str(tmp_path), "--experiment", "x", *words.split()) == 2
    assert message in capsys.readouterr().err


def test_ctrl_c_in_the_matches_says_that_the_command_goes_on(tmp_path, monkeypatch, capsys, status_of):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(judge.ByMatches, "payoffs", interrupted)
    words = ["--env", "toy_match_rps", "--train_for_env_steps", "500", "--train_dir", str(tmp_path)]
    assert status_of(command.main, *words, *SMALL) == 130
    assert "stopped after 0 iterations: the same command goes on" in capsys.readouterr().out


def test_a_length_in_frames_takes_the_place_of_the_default():
    assert default_end(["--env", "toy_match_rps"], 100) == {"train_for_env_steps": 100}
    for words in (["--train_for_env_frames", "5"], ["--train-for-env-steps=5"]):
        assert default_end(words, 100) == {}


def test_a_run_of_sf_train_in_the_place_of_a_search_is_one_sentence(tmp_path, status_of, capsys):
    RunDir.at(str(tmp_path), "x").prepare(Config().replace(env="toy_match_rps", past_share=0.2))
    for more in ([], ["--config", "vector"]):
        words = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "x", *more]
        assert status_of(command.main, *words) == 2
        assert "x is a run of sf-train" in capsys.readouterr().err


def test_a_search_that_was_begun_with_odd_matches_goes_on_and_is_drawn(
    tmp_path, trained, monkeypatch, capsys, status_of
):
    monkeypatch.setattr(command, "_line", lambda iteration: "")
    monkeypatch.setattr(judge, "judge_of", lambda *args: CyclicJudge())
    words = ["--env", "toy_match_rps", "--train_dir", str(tmp_path), "--experiment", "search"]
    assert status_of(command.main, *words, "--iterations", "1", "--matches", "4") == 0
    path = tmp_path / "search" / "psro.jsonl"
    path.write_text(path.read_text().replace('"matches": 4', '"matches": 5'))
    for number, sentence in (("4", "matches is 4, but the search in"), ("7", "matches is 7: an even number")):
        assert status_of(command.main, *words, "--iterations", "2", "--matches", number) == 2
        assert sentence in capsys.readouterr().err
    assert status_of(command.main, *words, "--iterations", "2", "--matches", "5") == 0
    assert len(trained) == len(read(path)) - 1 == 2
    pytest.importorskip("matplotlib")
    png = tmp_path / "a.png"
    assert status_of(command.main, *words, "--iterations", "2", "--matches", "5", "--png", png) == 0
    assert png.read_bytes().startswith(b"\x89PNG")


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
    with pytest.raises(ValueError, match=r"theirs:Encoder.* --trust true"):
        command._of_the_responses(args)
    assert command._of_the_responses([*args, "--trust", "true"])["encoder"] == "theirs:Encoder"


def test_two_teams_and_a_shared_reward_of_a_team_are_searched(tmp_path, trained, monkeypatch, status_of):
    monkeypatch.setattr(command, "_line", lambda iteration: "")
    tasks = []

    def evaluated(task, on_progress):
        tasks.append(task)
        return Evaluation("return", [Played(0, 0, 0, 1.0, 1, 1, {}), Played(0, 1, 1, 0.0, 1, 1, {})])

    monkeypatch.setattr(judge, "evaluate", evaluated)
    words = ["--env", "toy_match_counting", "--env_kwargs", '{"num_agents": 4}', "--share_reward", "team"]
    words += ["--teams", '[["agent_[01]"], ["agent_[23]"]]', "--train_dir", str(tmp_path), "--experiment", "search"]
    assert status_of(command.main, *words, "--iterations", "1", "--matches", "6") == 0
    assert [task.num_episodes for task in tasks] == [12]  # six matches, in which each plays two of four agents
