"""Which keys stand for which choice: a table, and what several keys at once come to."""

import pytest

from sf.envs import EnvOptions, describe
from sf.tools.commands.play.keys import Keyboard, key_map

PONG = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
DOOM_BATTLE = (
    ("NOOP", "MOVE_FORWARD", "MOVE_BACKWARD"),
    ("NOOP", "MOVE_LEFT", "MOVE_RIGHT"),
    ("NOOP", "ATTACK"),
    ("NOOP", "SPEED"),
    (*(f"TURN_LEFT {n}" for n in (10, 8, 6, 4, 2)), "NOOP", *(f"TURN_RIGHT {n}" for n in (2, 4, 6, 8, 10))),
)
TABLE = {
    "CartPole": ([("LEFT", "RIGHT")], {"LEFT": "left or 1", "RIGHT": "right or 2"}),
    "Pong": (
        [PONG],
        {
            "NOOP": "1",
            "FIRE": "space or 2",
            "RIGHT": "right or 3",
            "LEFT": "left or 4",
            "RIGHTFIRE": "right+space or 5",
            "LEFTFIRE": "left+space or 6",
        },
    ),
    "doom_battle": (
        DOOM_BATTLE,
        {
            "MOVE_FORWARD": "up",
            "MOVE_BACKWARD": "down",
            "MOVE_LEFT": "a",
            "MOVE_RIGHT": "d",
            "ATTACK": "space",
            "SPEED": "left shift",
            "TURN_LEFT 4": "left",
            "TURN_RIGHT 4": "right",
        },
    ),
    "weapons": (
        [("NOOP", "SELECT_WEAPON1", "SELECT_WEAPON2"), ("NOOP", "USE")],
        {"SELECT_WEAPON1": "1", "SELECT_WEAPON2": "2", "USE": "e"},
    ),
    "unnamed heads": (
        [("choice 1: 0", "choice 1: 1", "choice 1: 2"), ("choice 2: 0", "choice 2: 1")],
        {"choice 1: 1": "1", "choice 1: 2": "2", "choice 2: 1": "3"},
    ),
    "letters by name are not used twice": (
        [("NOOP", "JUMP", "FIRE", *"klmnopqr")],
        {
            "NOOP": "1",
            "FIRE": "space or 3",
            "JUMP": "j or 2",
            **dict(zip("klmnopqr", (*"456789", "a", "b"), strict=True)),
        },
    ),
}


@pytest.mark.parametrize("what", TABLE)
def test_the_table_of_keys(what):
    names, keys = TABLE[what]
    assert {names[head][choice]: words for head, choice, words in key_map(names).lines()} == keys


@pytest.mark.parametrize(
    ("env", "names"),
    [("doom_battle", DOOM_BATTLE), ("atari_pong", (PONG,))],
)
def test_the_names_of_the_table_are_those_of_the_environments(env, names):
    if env == "doom_battle":
        pytest.importorskip("envpool_assets")
    assert describe(env, EnvOptions()).action_names == names


@pytest.mark.parametrize(
    ("names", "held", "chosen"),
    [
        ([PONG], [], [None]),
        ([PONG], ["left", "space"], [5]),
        ([PONG], ["space", "right"], [4]),
        ([PONG], ["left", "right"], [2]),  # the last pressed
        ([PONG], ["left", "x", "f1"], [3]),
        ([("NOOP", "MOVE_LEFT", "MOVE_RIGHT", "ATTACK")], ["left", "space"], [3]),
        (DOOM_BATTLE, ["up", "left shift", "left", "space"], [1, None, 1, 1, 3]),
        (DOOM_BATTLE, ["d", "a"], [None, 1, None, None, None]),
    ],
)
def test_what_several_keys_at_once_choose(names, held, chosen):
    assert key_map(names).chosen(held) == chosen


def test_where_no_key_is_held_it_is_the_choice_that_does_nothing_or_the_first():
    assert key_map(DOOM_BATTLE).idle == [0, 0, 0, 0, 5]
    assert key_map([("LEFT", "noop", "RIGHT")]).idle == [1]
    assert key_map([("LEFT", "RIGHT")]).idle == [0]


def test_a_short_press_counts_and_the_key_that_was_pressed_last_comes_last():
    keyboard = Keyboard()
    for key, is_down in (("left", True), ("space", True), ("space", False), ("[1]", True)):
        keyboard.note(key, is_down)
    assert keyboard.held() == ["left", "space", "1"]
    assert keyboard.held() == ["left", "1"]
    keyboard.note("left", False)
    keyboard.note("left", True)
    keyboard.forget()
    assert not keyboard.is_pressed
    assert keyboard.held() == ["1", "left"]


def test_presses_that_wait_come_one_by_one_with_the_keys_that_are_down():
    keyboard = Keyboard()
    for key, is_down in (("up", True), ("3", True), ("3", False), ("5", True)):
        keyboard.note(key, is_down)
    assert [keyboard.next_press() for _ in range(3)] == [["5", "up"], ["up", "5", "3"], ["up", "5"]]
    assert not keyboard.is_pressed
