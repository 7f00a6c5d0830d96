"""What players are worth against each other: exactly, and by matches."""

import pytest
from untrained import untrained

from sf import envs
from sf.config import Config
from sf.envs import UsageError
from sf.envs.openspiel import information_states
from sf.evaluation.play.episodes import Played
from sf.evaluation.results import Evaluation
from sf.tools.psro import judge as judge_module
from sf.tools.psro.judge import ByMatches, Exact, judge_of


def config_of(env, **flags):
    return Config().replace(env=env, **flags)


def judge(env, num_matches=100, say=print, **flags):
    config = config_of(env, **flags)
    return judge_of(config, envs.describe(env, config.environment), num_matches, say)


@pytest.mark.long
def test_exact_payoffs_are_antisymmetric_and_those_of_many_matches():
    pytest.importorskip("pyspiel")
    env = "openspiel:kuhn_poker"
    players = {"random": None, "a": untrained(env, seed=1), "b": untrained(env, seed=2)}
    exact = judge(env)
    assert isinstance(exact, Exact)
    assert exact.payoffs("random", players, ["random"]) == pytest.approx([0.0])
    to_b, to_random = exact.payoffs("a", players, ["b", "random"])
    assert exact.payoffs("b", players, ["a"]) == pytest.approx([-to_b])
    played = ByMatches(config_of(env), envs.describe(env, config_of(env).environment), 1000, print)
    assert played.payoffs("a", players, ["random"]) == pytest.approx([to_random], abs=0.15)


def test_exploitability_is_of_the_mixture():
    pytest.importorskip("pyspiel")
    env = "openspiel:kuhn_poker"
    exact = judge(env)
    players = {"random": None, "a": untrained(env, seed=1)}
    assert exact.exploitability(players, {"random": 1.0}) == pytest.approx(0.4583, abs=1e-4)
    of_a = exact.exploitability(players, {"a": 1.0})
    assert exact.exploitability(players, {"random": 0.0, "a": 1.0}) == pytest.approx(of_a)
    assert exact.exploitability(players, {"random": 0.5, "a": 0.5}) not in (pytest.approx(of_a), pytest.approx(0.4583))


def test_each_pair_plays_once_with_seeds_of_its_own_and_is_judged_by_whole_matches(monkeypatch):
    met = Evaluation("return", [Played(0, 0, 0, 1.0, 1, 1, {})] * 3 + [Played(0, 1, 1, 2.0, 1, 1, {})])
    seeds = []
    monkeypatch.setattr(judge_module, "evaluate", lambda task, on_progress: seeds.append(task.seed) or met)
    players = dict.fromkeys(("random", "a", "b"), untrained("toy_match_rps", seed=1))

    def seeds_of(seed):
        seeds.clear()
        by_matches = judge("toy_match_rps", 4, seed=seed)
        assert by_matches.payoffs("a", players, ["random"]) == [0.5]
        by_matches.payoffs("b", players, ["random", "a"])
        return [*seeds]

    first, other = seeds_of(1), seeds_of(2)
    assert seeds_of(1) == first
    assert len({*first, *other}) == 6
    by_matches = judge("toy_match_rps", 4)
    assert isinstance(by_matches, ByMatches)
    assert by_matches.exploitability(players, {"a": 1.0}) is None
    met.episodes[:] = [Played(n, 0, n % 2, 1.0, 1, 1, {}) for n in range(4)]  # an agent joins no match
    with pytest.raises(UsageError, match="a and random never met"):
        by_matches.payoffs("a", players, ["random"])


@pytest.mark.parametrize(
    ("env", "flags", "why"),
    [
        ("openspiel:connect_four", {}, "exploitability is not known"),
        ("openspiel:kuhn_poker", {"core": "gru"}, "recurrent"),
    ],
)
def test_a_game_that_is_too_large_and_policies_that_remember_are_judged_by_matches(env, flags, why, monkeypatch):
    pytest.importorskip("pyspiel")
    monkeypatch.setattr(information_states, "MOST_HISTORIES", 1000)  # more than Kuhn poker has
    said = []
    assert isinstance(judge(env, 50, said.append, **flags), ByMatches)
    assert len(said) == 1
    assert why in said[0]
