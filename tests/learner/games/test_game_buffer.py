"""The buffer keeps the latest games, draws each of their positions alike, and is whole whenever its process dies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_games import SPEC

from sf.learner.games import buffer as module
from sf.learner.games.buffer import GameBuffer
from sf.shared.kept_games import allocate_games, position_arrays
from sf.shared.rows import OBS


def arrays_of(num_positions, num_games=1000):
    per_position = sum(array[0].nbytes for array in position_arrays(allocate_games(SPEC, 1, 1)).values())
    return allocate_games(SPEC, num_games, num_positions * per_position)


def game(number, length, arrays):
    fields = {
        name: np.zeros((length, *array.shape[1:]), array.dtype) for name, array in position_arrays(arrays).items()
    }
    fields[OBS + "obs"][:, 0], fields[OBS + "obs"][:, 1] = number, np.arange(length)
    return fields


def content(games):
    """What is drawn at last if one draws often."""
    drawn = games.draw(3000, (0,))[OBS + "obs"]
    return {tuple(map(int, seen)) for seen in drawn}


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=30), num_games=st.integers(1, 8))
@settings(max_examples=50, deadline=None)
def test_it_has_the_latest_games_that_fit_and_none_of_them_in_part(lengths, num_games):
    arrays = arrays_of(12, num_games)
    games = GameBuffer(arrays, samples_per_position=1e6)
    for number, length in enumerate(lengths):
        games.add(game(number, length, arrays))
    kept, room = [], 12
    for number in reversed(range(len(lengths))):
        room -= lengths[number]
        if room < 0 or len(kept) == num_games:
            break
        kept.append(number)
    assert games.num_games == len(kept)
    assert games.num_games_ended == len(lengths)
    assert games.num_positions == sum(lengths[number] for number in kept)
    assert content(games) == {(number, move) for number in kept for move in range(lengths[number])}


def test_a_game_that_is_longer_than_the_buffer_is_left_out():
    arrays = arrays_of(4)
    games = GameBuffer(arrays, 1.0)
    games.add(game(0, 3, arrays))
    games.add(game(1, 5, arrays))
    assert games.num_games == 1


def test_credit_comes_with_positions_and_is_gone_with_them():
    arrays = arrays_of(10)
    games = GameBuffer(arrays, samples_per_position=2.0)
    games.add(game(0, 4, arrays))
    assert games.credit == 8
    games.draw(3, (0,), num_times=2)
    assert games.credit == 2
    assert games.samples_per_position == 1.5
    for number in (1, 2, 3):
        games.add(game(number, 5, arrays))
    assert games.credit == 20  # of the 10 positions that are there


def test_a_buffer_that_is_smaller_than_an_iteration_earns_one_all_the_same():
    arrays = arrays_of(10)
    games = GameBuffer(arrays, samples_per_position=1.0, samples_per_iteration=25)
    for number in range(10):
        games.add(game(number, 5, arrays))
    assert games.credit == 25


def test_a_file_gives_back_the_games_and_the_same_draws(tmp_path):
    arrays = arrays_of(20)
    games = GameBuffer(arrays, 3.0)
    for number in range(7):
        games.add(game(number, 4, arrays))
    games.draw(5, (1, 2))
    games.save(tmp_path)
    other = GameBuffer(arrays_of(20), 3.0)
    other.load_if_empty(tmp_path)
    assert (other.num_games, other.num_games_ended, other.credit) == (5, 7, games.credit)
    assert other.samples_per_position == games.samples_per_position
    for _ in range(2):
        ours, theirs = games.draw(50, (1, 2)), other.draw(50, (1, 2))
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_smaller_buffer_goes_on_with_the_latest_games(tmp_path):
    arrays = arrays_of(20)
    games = GameBuffer(arrays, 3.0)
    for number in range(5):
        games.add(game(number, 4, arrays))
    games.save(tmp_path)
    other = GameBuffer(arrays_of(9), 3.0)
    other.load_if_empty(tmp_path)
    assert {number for number, move in content(other)} == {3, 4}


def test_a_damaged_file_is_an_empty_buffer(tmp_path, capsys):
    arrays = arrays_of(20)
    games = GameBuffer(arrays, 3.0)
    games.add(game(0, 4, arrays))
    games.save(tmp_path)
    data = bytearray((tmp_path / module.FILE).read_bytes())
    data[-1] ^= 1
    (tmp_path / module.FILE).write_bytes(data)
    other = GameBuffer(arrays_of(20), 3.0)
    other.load_if_empty(tmp_path)
    assert other.num_games == 0
    assert "begins empty" in capsys.readouterr().out


class KilledError(Exception):
    """Takes the place of SIGKILL."""


class Fragile(dict):
    """Arrays of a process that is killed before it reads this many of them."""

    def __init__(self, named, patience):
        super().__init__(named)
        self.patience = patience

    def items(self):
        for item in super().items():
            self.patience -= 1
            if self.patience < 0:
                raise KilledError
            yield item


@pytest.mark.parametrize("patience", range(4))
def test_a_successor_finds_whole_games_whenever_the_writer_is_killed(patience):
    arrays = arrays_of(10)
    games = GameBuffer(arrays, 1e6)
    for number in range(3):
        games.add(game(number, 4, arrays))
    games._positions = Fragile(games._positions, patience)
    with pytest.raises(KilledError):
        games.add(game(3, 5, arrays))
    successor = GameBuffer(arrays, 1e6)
    seen = content(successor)
    assert seen == {(2, move) for move in range(4)}
    successor.add(game(4, 3, arrays))
    assert content(successor) == seen | {(4, move) for move in range(3)}
