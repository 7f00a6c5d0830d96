"""Games are joined from the slots of their actors, whole or not at all."""

import numpy as np
from made_games import Actor, moves_of, outcome, slots

from sf.learner.games.joining import GameJoiner
from sf.shared.kept_games import TARGET
from sf.shared.rows import OBS


def joiner(rows):
    return GameJoiner(rows, gamma=1.0, lambda_=1.0, reward_scale=1.0)


def lengths(game):
    return 1 + game % 7  # over the ends of slots, and several in one


def test_every_game_comes_whole_with_its_outcome_in_the_order_of_its_moves():
    rows = slots(2)
    join, actors, ended = joiner(rows), [Actor(1, lengths), Actor(2, lengths)], []
    for _ in range(12):
        for slot, actor in enumerate(actors):
            actor.fill(rows, slot)
            ended += join.add(slot)
    found = {}
    for game in ended:
        number, moves = moves_of(game)
        assert number not in found
        found[number] = moves
        assert {len(rows) for rows in game.values()} == {len(moves)}
        assert set(game[TARGET].tolist()) == {outcome(number)}
    for actor in actors:
        begun = range(100 * actor.actor, actor.game)
        assert {number: found[number] for number in begun} == {
            number: list(range(0, lengths(number), 2)) for number in begun
        }


def test_the_half_game_of_a_worker_that_died_is_dropped():
    rows = slots(1)
    join, actor = joiner(rows), Actor(0, lambda game: 6)
    actor.fill(rows, 0)
    assert join.add(0) == []
    actor.die()
    actor.fill(rows, 0)
    assert join.add(0) == []
    actor.fill(rows, 0)
    (game,) = join.add(0)
    assert moves_of(game) == (1, [0, 2, 4])


def test_a_game_whose_beginning_was_not_seen_is_dropped():
    rows = slots(1)
    actor = Actor(0, lambda game: 6)
    actor.fill(rows, 0)  # that nobody has read: the learner of then has died
    join = joiner(rows)
    actor.fill(rows, 0)
    assert join.add(0) == []
    actor.fill(rows, 0)
    (game,) = join.add(0)
    assert moves_of(game) == (1, [0, 2, 4])


def test_a_slot_that_does_not_follow_on_the_one_before_is_of_another_game():
    rows = slots(2)
    join, actor = joiner(rows), Actor(0, lambda game: 6)
    for slot in (0, 1):
        actor.fill(rows, slot)
    assert join.add(1) == []  # the wrong way round: game 1 begins in it
    assert join.add(0) == []  # and game 0 is in this one
    found = []
    for _ in range(3):
        actor.fill(rows, 0)
        found += [moves_of(game)[0] for game in join.add(0)]
    assert found == [2]


def test_values_are_in_the_unit_of_rewards():
    rows = slots(1)
    join = GameJoiner(rows, gamma=1.0, lambda_=0.0, reward_scale=0.5)
    Actor(0, lambda game: 4).fill(rows, 0)
    (game,) = join.add(0)
    np.testing.assert_allclose(game[TARGET], [0.5, -1.0])
    assert game[OBS + "obs"].shape == (2, 2)
