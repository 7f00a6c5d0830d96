"""The search of sf-psro with a population for each seat."""

import itertools
import json

import gymnasium as gym
import numpy as np
import pytest
from untrained import untrained

from sf import envs
from sf.config import Config
from sf.envs import EnvSpec, UsageError
from sf.league.meta_solvers import SOLVERS_BY_SEAT
from sf.tools.psro import command
from sf.tools.psro.by_seat import SeatSearch
from sf.tools.psro.record import Iteration, append, payoffs_by_seat, read
from sf.tools.psro.seat_judge import seat_judge_of
from sf.tools.psro.seats import config_of_responses, seats_of

SPEC = EnvSpec(gym.spaces.Dict(), gym.spaces.Discrete(2), num_agents=3, agents=("a[0]", "a[1]", "b"))
TEAMS = EnvSpec(gym.spaces.Dict(), gym.spaces.Discrete(2), num_agents=3, agents=SPEC.agents, teams=(0, 0, 1))


class Newer:
    """The newer player of two seats wins, by how much newer it is."""

    def values(self, profile, players):
        first, second = (int(name.split("_")[1]) if name != "random" else 0 for name in profile)
        return [float(first - second), float(second - first)]

    def best_response_values(self, players, mixtures):
        assert [sum(of_seat.values()) for of_seat in mixtures] == pytest.approx([1.0, 1.0])
        return [5.0, 6.0]

    def exploitability(self, players, mixtures):
        return 1.0 / len(players)


def new_search(tmp_path, solver="uniform"):
    config = Config().replace(env="toy_match_rps", train_for_env_steps=1000)
    spec = envs.describe("toy_match_rps", config.environment)
    settings = {"meta_solver": solver}
    of_all = config_of_responses(config, spec)
    return SeatSearch(tmp_path / "search", of_all, seats_of(spec), Newer(), solver, True, settings)


def test_each_team_is_a_seat_and_each_agent_without_teams():
    assert [(seat.name, seat.agents) for seat in seats_of(TEAMS)] == [("team_0", [0, 1]), ("b", [2])]
    assert [seat.name for seat in seats_of(SPEC)] == list(SPEC.agents)
    config = config_of_responses(Config().replace(train_for_env_steps=500), TEAMS)
    assert (config.population.num_policies, config.run.train_for_env_steps) == (2, 1000)
    assert json.loads(config.population.policy_of) == {"a[[]0]": 0, "a[[]1]": 0, "b": 1}


def test_each_seat_gets_a_response_to_the_mixture_of_the_other(tmp_path, trained):
    search = new_search(tmp_path)
    lines = list(search.run(2, print))
    first, second = trained
    assert first.players.players == ("random", "random")
    assert first.players.player_roles == ("player_0", "player_1")
    assert first.run.init_from is None
    of_policy = [str(tmp_path / "search" / "policies" / f"policy_001_player_{n}.safetensors") for n in range(2)]
    assert second.players.players == ("random", of_policy[0], "random", of_policy[1])
    assert second.players.player_roles == ("player_0", "player_0", "player_1", "player_1")
    assert second.players.opponent_weights == (0.5,) * 4
    assert second.run.init_from == str(tmp_path / "search" / "responses" / "policy_001")
    assert [line.env_steps for line in lines] == [0, 2000, 4000]
    assert lines[2].response_values == {"player_0": 1.5, "player_1": 1.5}  # 2 from random, 1 from the first response
    assert lines[2].best_response_values == {"player_0": 5.0, "player_1": 6.0}
    table = payoffs_by_seat([line.payoffs for line in lines])
    assert table[..., 0].tolist() == [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    again = new_search(tmp_path)
    assert [json.loads(json.dumps(vars(line))) for line in again.iterations] == [
        json.loads(json.dumps(vars(line))) for line in lines
    ]
    assert list(again.run(2, print)) == []


def test_a_search_of_the_other_kind_is_one_sentence(tmp_path, trained):
    path = tmp_path / "search" / "psro.jsonl"
    list(new_search(tmp_path).run(0, print))
    with pytest.raises(UsageError, match="--population_per_seat true"):
        read(path)
    path.unlink()
    append(path, Iteration(0, "random", None, {}, [], {"random": 1.0}, None, 0, 0.0, {}))
    with pytest.raises(UsageError, match="--population_per_seat false"):
        new_search(tmp_path)


def test_the_solvers_find_what_is_known_of_small_games():
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    payoffs = np.stack([np.vstack([pennies, [0.5, -2.0]]), -np.vstack([pennies, [0.5, -2.0]])], axis=-1)  # [3, 2, 2]
    first, second = SOLVERS_BY_SEAT["nash"](payoffs)
    assert first.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-4)
    assert second.tolist() == pytest.approx([0.5, 0.5], abs=1e-4)
    assert [own.tolist() for own in SOLVERS_BY_SEAT["latest"](payoffs)] == [[0, 0, 1], [0, 1]]
    assert [len(own) for own in SOLVERS_BY_SEAT["uniform"](payoffs)] == [3, 2]


def test_alpharank_finds_the_profile_that_is_best_for_all_of_three_seats():
    pytest.importorskip("pyspiel")
    payoffs = np.zeros((2, 3, 4, 3))
    for profile in itertools.product(range(2), range(3), range(4)):
        payoffs[profile] = [-((profile[0] - 1) ** 2), -((profile[1] - 0) ** 2), -((profile[2] - 2) ** 2)]
    first, second, third = SOLVERS_BY_SEAT["alpharank"](payoffs)
    assert (first.argmax(), second.argmax(), third.argmax()) == (1, 0, 2)
    assert min(first.max(), second.max(), third.max()) > 0.9
    assert [own.tolist() for own in SOLVERS_BY_SEAT["alpharank"](np.ones((1, 1, 2)))] == [[1.0], [1.0]]


def judge(env, say=print, **flags):
    config = Config().replace(env=env, **flags)
    spec = envs.describe(env, config.environment)
    return seat_judge_of(config, spec, [seat.agents for seat in seats_of(spec)], 400, say)


def test_exact_best_responses_add_up_to_what_can_be_exploited():
    pytest.importorskip("pyspiel")
    env = "openspiel:kuhn_poker"
    exact = judge(env)
    players = {"random": None, "a": untrained(env, seed=1), "b": untrained(env, seed=2)}
    mixtures = [{"random": 0.2, "a": 0.8}, {"b": 1.0}]
    bests = exact.best_response_values(players, mixtures)
    assert sum(bests) / 2 == pytest.approx(exact.exploitability(players, mixtures))  # zero-sum
    mixed = 0.2 * exact.values(["random", "b"], players)[0] + 0.8 * exact.values(["a", "b"], players)[0]
    assert bests[0] >= mixed
    assert bests[1] >= -mixed
    by_matches = judge(env, core="gru")
    assert by_matches.best_response_values(players, mixtures) is None


@pytest.mark.long
def test_matches_of_a_profile_agree_with_exact_values():
    pytest.importorskip("pyspiel")
    env = "openspiel:kuhn_poker"
    players = {"random": None, "a": untrained(env, seed=1)}
    exact, played = (judge(env, core=core).values(["a", "random"], players) for core in ("none", "gru"))
    assert played == pytest.approx(exact, abs=0.25)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ('--env toy_match_counting --env_kwargs {"num_agents":4}', "has 4 seats: take alpharank"),
        ("--env openspiel:coop_box_pushing", "is not zero-sum: take alpharank"),
        ("--env openspiel:coop_box_pushing --population_per_seat false --meta_solver uniform", "not a zero-sum game"),
        ('--env toy_match_counting --env_kwargs {"num_agents":4} --population_per_seat false', "no two teams"),
        ('--env toy_match_rps --policy_of {"*":0}', "policy_of is set"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, message, tmp_path, status_of, capsys):
    pytest.importorskip("pyspiel")
    assert status_of(command.main, "--train_dir", str(tmp_path), "--experiment", "x", *words.split()) == 2
    assert message in capsys.readouterr().err
