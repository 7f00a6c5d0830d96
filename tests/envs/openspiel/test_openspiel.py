"""Games of OpenSpiel: each is played beside a bare game that gets the same actions and the same chance."""

from __future__ import annotations

import bisect
import itertools
import json
import random
from typing import Any

import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.seeding import env_seed

SEED, FIRST_ENV_IDX, NUM_ENVS = 7, 3, 2

PLAYED = [
    ("tic_tac_toe", {}),
    ("go", {"board_size": 5, "komi": 1}),
    ("dots_and_boxes", {}),  # who closes a box moves again
    ("backgammon", {"max_player_turns": 20}),  # chance between moves
    ("kuhn_poker", {"players": 3}),
    ("leduc_poker", {"tensor": "observation"}),
    ("repeated_leduc_poker", {"num_hands": 2}),  # pays after each hand
    ("hanabi", {}),  # pays all of them alike, after most moves
    ("bargaining", {}),  # general sum
    ("matching_pennies_3p", {}),
    ("goofspiel", {"num_cards": 4, "imp_info": True, "players": 3, "points_order": "descending"}),
    ("laser_tag", {"horizon": 30}),  # chance decides who moves first, and pays
    ("coop_box_pushing", {"horizon": 20}),  # rewards that chance follows
    ("pathfinding", {"horizon": 20}),  # one player, who acts "at once"
    ("turn_based_simultaneous_game", {"game": {"name": "goofspiel", "num_cards": 4}}),
    ("2048", {"max_tile": 16}),
    ("blackjack", {}),  # may be over when it is dealt
    *(("othello", {}), ("mancala", {}), ("blotto", {}), ("universal_poker", {}), ("python_team_dominoes", {})),
    ("battleship", {"num_shots": 9}),  # of two tensors it has the one alone
]


@pytest.fixture
def pyspiel() -> Any:
    return pytest.importorskip("pyspiel")


def _make(name: str, num_envs: int = NUM_ENVS, seed: int = SEED, **options: Any) -> envs.EnvGroup:
    kwargs = json.dumps(options.pop("env_kwargs", {}))
    options = EnvOptions(env_kwargs=kwargs, **options)
    return envs.make_group(f"openspiel:{name}", num_envs, options, seed=seed, first_env_idx=FIRST_ENV_IDX)


class Bare:
    """The game itself, stepped as OpenSpiel's own examples do. Chance is drawn from the seed of the environment."""

    def __init__(self, name: str, kwargs: dict[str, Any], env_idx: int) -> None:
        import pyspiel  # noqa: PLC0415  an extra

        self.tensor = kwargs.pop("tensor", None)
        self.game = pyspiel.load_game(name, {**kwargs, **({"komi": 1.0} if "komi" in kwargs else {})})
        self.players = range(self.game.num_players())
        self.rng = random.Random(env_seed(SEED, env_idx))
        self.begin()

    def begin(self) -> None:
        self.state = self.game.new_initial_state()
        self.pass_chance()
        if self.state.is_terminal():
            self.begin()

    def pass_chance(self) -> None:
        while self.state.is_chance_node():
            actions, probabilities = zip(*self.state.chance_outcomes(), strict=True)
            drawn = bisect.bisect(list(itertools.accumulate(probabilities)), self.rng.random())
            self.state.apply_action(actions[drawn])

    def step(self, choices: list[int]) -> None:
        if self.state.is_simultaneous_node():
            self.state.apply_actions_with_legality_checks(choices)
        else:
            self.state.apply_action_with_legality_check(choices[self.state.current_player()])
        self.pass_chance()

    def acts(self, player: int) -> bool:
        return self.state.is_simultaneous_node() or self.state.current_player() == player

    def seen(self, player: int) -> list[float]:
        has_recall = self.game.get_type().provides_information_state_tensor and self.tensor != "observation"
        state = self.state
        tensor = state.information_state_tensor(player) if has_recall else state.observation_tensor(player)
        shape = self.game.information_state_tensor_shape() if has_recall else self.game.observation_tensor_shape()
        squares = shape[1] * shape[2] if len(shape) == 3 else 1
        if len(self.players) == 1:
            return tensor
        turn = [*(float(p == player) for p in self.players), *(float(self.acts(p)) for p in self.players)]
        return [*tensor, *(number for number in turn for _ in range(squares))]  # of a board, each is a plane

    def mask(self, player: int) -> list[int]:
        if not self.acts(player):
            return [0] * self.game.num_distinct_actions()
        return self.state.legal_actions_mask(player)


@pytest.mark.parametrize(("name", "kwargs"), PLAYED, ids=lambda value: value if isinstance(value, str) else None)
def test_each_row_is_what_the_bare_game_says(name: str, kwargs: dict[str, Any], pyspiel: Any) -> None:
    obs, steps = play(_make(name, env_kwargs=kwargs), 100)
    bares = [Bare(name, dict(kwargs), FIRST_ENV_IDX + m) for m in range(NUM_ENVS)]
    num_players = len(bares[0].players)
    before, num_decisions = np.zeros((NUM_ENVS, num_players)), np.zeros(NUM_ENVS, int)
    num_over = 0
    for step in [None, *steps]:
        if step is not None:
            episodes = []
            for m, bare in enumerate(bares):
                actors = slice(m * num_players, (m + 1) * num_players)
                bare.step(step.discrete[actors, 0].tolist())
                num_decisions[m] += 1
                over, returns = bare.state.is_terminal(), np.array(bare.state.returns())
                np.testing.assert_allclose(step.result.reward[actors], returns - before[m], atol=1e-5)
                assert step.result.terminated[actors].tolist() == [over] * num_players
                assert step.result.first[actors].tolist() == [over] * num_players
                before[m] = returns
                if over:
                    episodes += [(actors.start + p, returns[p], num_decisions[m]) for p in bare.players]
                    before[m], num_decisions[m] = 0.0, 0
                    bare.begin()
                num_over += over
            assert step.result.valid.all()
            assert not step.result.truncated.any()
            assert [(e.actor_idx, e.episode_return, e.num_steps) for e in step.episodes] == episodes
            assert all(e.num_frames == e.num_steps for e in step.episodes)
            obs = step.obs
        seen = [bare.seen(p) for bare in bares for p in bare.players]
        masks = [bare.mask(p) for bare in bares for p in bare.players]
        rows = obs["observation"].reshape(len(seen), -1)
        np.testing.assert_array_equal(rows, np.array(seen, np.float32))
        assert obs["action_mask"].tolist() == masks
    assert num_over or name == "2048"


def _summary(steps: list[Any]) -> list[Any]:
    return [(step.obs["observation"].tolist(), step.result.reward.tolist()) for step in steps]


@pytest.mark.parametrize("name", ["leduc_poker", "negotiation", "stones_and_gems"])
def test_chance_follows_from_the_seed_also_where_the_game_draws_it_itself(name: str, pyspiel: Any) -> None:
    (first, one), (again, two), (other, _) = (play(_make(name, seed=seed), 40) for seed in (1, 1, 2))
    assert (first["observation"] == again["observation"]).all()
    assert _summary(one) == _summary(two)
    per_env = np.split(np.array([step.obs["observation"] for step in one]), NUM_ENVS, axis=1)
    assert not (per_env[0] == per_env[1]).all()
    if name == "negotiation":  # the user's own seed is kept
        first, _ = play(_make(name, env_kwargs={"rng_seed": 5}), 0)
        assert (first["observation"][:2] == first["observation"][2:]).all()
    assert name == "stones_and_gems" or not (first["observation"] == other["observation"]).all()


def test_a_game_pays_its_players_whatever_they_are_trained_on(pyspiel: Any) -> None:
    _, steps = play(_make("matrix_pd", share_reward=True), 30)
    _, alone = play(_make("matrix_pd"), 30)
    for step, unshared in zip(steps, alone, strict=True):
        assert step.result.reward.tolist() == unshared.result.reward.tolist()
        assert [episode.episode_return for episode in step.episodes] == step.result.reward.tolist()


def test_an_action_that_is_not_legal_is_named_before_the_game_sees_it(pyspiel: Any) -> None:
    group = _make("tic_tac_toe", num_envs=1)
    rows = {key: list(np.zeros((2, *box.shape), box.dtype)) for key, box in group.spec.obs_space.items()}
    result, nothing = envs.StepResult.empty(2), np.zeros((2, 0), np.float32)
    group.reset(rows)
    group.step(np.array([[4], [0]], np.int32), nothing, rows, result)
    with pytest.raises(UsageError, match="player 1 chose action 4"):
        group.step(np.array([[0], [4]], np.int32), nothing, rows, result)


WRONG = [
    ("leduc_pokr", {}, "openspiel:leduc_poker"),
    ("go(board_size=9)", {}, "openspiel:go, with its parameters in env_kwargs"),
    ("go", {"board_sise": 9}, "did you mean board_size"),
    ("go", {"board_size": "9"}, "board_size '9'"),
    ("misere", {"game": "go"}, "a game as an object"),
    ("go", {"tensor": "information_state"}, "has observation"),
    ("go", {"board_size": -1}, r"\(4, -1, -1\)"),
    ("misere", {}, "needs parameters"),
    ("coin_game", {}, "no tensor"),
    ("crossword", {}, "no numbered actions"),
    ("colored_trails", {}, "93,123 actions"),
]


@pytest.mark.parametrize(("name", "kwargs", "named"), WRONG)
def test_what_cannot_be_is_one_sentence(name: str, kwargs: dict[str, Any], named: str, pyspiel: Any) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        _make(name, env_kwargs=kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kwargs", "named"),
    [("hanabi", {"colors": 0}, "crash .*num_colors_ > 0"), ("blotto", {"fields": -1}, "too large for memory")],
)
def test_parameters_of_which_openspiel_crashes_or_does_not_come_back_are_refused(name, kwargs, named, pyspiel) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        envs.describe(f"openspiel:{name}", EnvOptions(env_kwargs=json.dumps(kwargs)))
    assert "\n" not in str(caught.value)


def test_options_of_other_environments_are_refused(pyspiel: Any) -> None:
    with pytest.raises(UsageError, match="env_frameskip is 4"):
        _make("go", env_frameskip=4)
    with pytest.raises(UsageError, match="env_wrappers"):
        _make("go", env_wrappers=("gymnasium.wrappers:FlattenObservation",))


def test_who_resigns_loses_and_the_next_game_begins(pyspiel: Any) -> None:
    group = _make("connect_four")
    obs = {key: np.zeros((group.num_actors, *box.shape), box.dtype) for key, box in group.spec.obs_space.items()}
    result = envs.StepResult.empty(group.num_actors)
    group.reset(obs)
    choices, nothing = np.zeros((group.num_actors, 1), np.int32), np.zeros((group.num_actors, 0), np.float32)
    assert group.step(choices, nothing, obs, result) == []
    group.resign(1)  # type: ignore[attr-defined]
    episodes = group.step(choices, nothing, obs, result)
    assert result.reward.tolist() == [0, 0, 1, -1]  # the second player of the second match was to move
    assert result.terminated.tolist() == result.first.tolist() == [False, False, True, True]
    assert [(each.actor_idx, each.episode_return, each.num_steps) for each in episodes] == [(2, 1, 2), (3, -1, 2)]
    assert group.step(choices, nothing, obs, result) == []
    assert not result.terminated.any()
