"""What a person does with the keys becomes choices that are allowed, or a sentence."""

import gymnasium as gym
import numpy as np
import pytest

from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.tools.commands.play.controls import Controls, WindowClosedError
from sf.tools.commands.play.keys import Keyboard


class Asked:
    """A console before which somebody presses a key whenever it waits, until there are none left."""

    def __init__(self, keyboard, keys):
        self.said, self.lines, self.num_lines = "", (), 0
        self.all_said = []
        self._keyboard, self._keys = keyboard, list(keys)

    def wait_for(self, came):
        self.all_said.append(self.said)
        if not self._keys:
            return False
        key = self._keys.pop(0)
        self._keyboard.note(key, True)
        self._keyboard.note(key, False)
        assert came()
        return True


def controls(space, *keys, waits=True, names=(), has_mask=True):
    num_choices = int(space.n) if isinstance(space, gym.spaces.Discrete) else int(space.nvec.sum())
    boxes = {"observation": gym.spaces.Box(0.0, 1.0, (1,))}
    boxes |= {"action_mask": gym.spaces.Box(0, 1, (num_choices,), np.int8)} if has_mask else {}
    keyboard = Keyboard()
    console = Asked(keyboard, keys)
    spec = EnvSpec(gym.spaces.Dict(boxes), space, action_names=names)
    return Controls("env", spec, waits, keyboard, console), console, keyboard


def test_many_actions_share_the_keys_page_by_page():
    many, console, _ = controls(gym.spaces.Discrete(362), "page down", "page down", "page down", "page down", "2")
    mask = np.zeros(362, np.int8)
    mask[100:182] = 1
    assert many.choose(mask, {}) == [100 + 35 + 1]
    pages = [f"your turn: page {page} of 3, page down" for page in (1, 2, 3, 1, 2)]
    assert console.all_said == pages
    assert console.num_lines == 35


def test_a_move_is_named_where_the_position_names_it():
    board, console, _ = controls(gym.spaces.Discrete(4), "right")
    assert board.choose(np.array([1, 0, 1, 1]), {0: "Left", 2: "Right", 3: "Down"}) == [2]
    assert [(line.name, line.keys, line.is_allowed) for line in console.lines] == [
        ("Left", "left or 1", True),
        ("action 1", "2", False),
        ("Right", "right or 3", True),
        ("Down", "down or 4", True),
    ]


def test_enter_also_of_the_keypad_does_nothing_where_that_is_allowed():
    pad, console, _ = controls(gym.spaces.Discrete(3), "enter", names=(("LEFT", "NOOP", "RIGHT"),))
    assert pad.choose(np.array([1, 1, 1]), {}) == [1]
    pad, console, _ = controls(gym.spaces.Discrete(3), "return", "3", names=(("LEFT", "NOOP", "RIGHT"),))
    assert pad.choose(np.array([1, 0, 1]), {}) == [2]
    assert console.all_said == ["your turn", "NOOP is not allowed now"]


def test_without_a_wait_what_is_not_allowed_is_said_while_it_is_held_and_something_else_is_done():
    pad, console, keyboard = controls(gym.spaces.MultiDiscrete([3, 2]), waits=False)
    keyboard.note("1", True)
    assert pad.choose(np.array([0, 0, 1, 1, 1]), {}) == [2, 0]
    assert console.said == "choice 1: 1 is not allowed now"
    assert pad.choose(np.array([0, 1, 1, 1, 1]), {}) == [1, 0]
    assert [(line.keys, line.is_chosen) for line in console.lines] == [("1", True), ("2", False), ("3", False)]
    keyboard.note("1", False)
    assert pad.choose(np.array([0, 0, 1, 1, 1]), {}) == [2, 0]  # what would be done without a key is not allowed
    assert console.said == ""


def test_an_episode_begins_with_any_key_where_the_game_does_not_wait_for_each():
    pad, console, _ = controls(gym.spaces.Discrete(2), "f1", waits=False, has_mask=False)
    pad.begin()
    assert console.all_said == ["press any key to begin"]
    assert pad.choose(None, {}) == [0]
    pad, console, _ = controls(gym.spaces.Discrete(2), waits=True, has_mask=False)
    pad.begin()
    assert console.all_said == []


def test_a_window_that_is_closed_while_the_game_waits_ends_it():
    pad, *_ = controls(gym.spaces.Discrete(2), "f1", has_mask=False)
    with pytest.raises(WindowClosedError):
        pad.choose(None, {})


@pytest.mark.parametrize(("waits", "has_mask"), [(False, True), (True, False)])
def test_more_actions_than_keys_need_a_mask_and_a_wait(waits, has_mask):
    with pytest.raises(UsageError, match="36 actions"):
        controls(gym.spaces.Discrete(36), waits=waits, has_mask=has_mask)
