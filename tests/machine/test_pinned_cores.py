"""Runs that are started side by side spread over the cores."""

import os
import signal
import socket
from collections import Counter

import pytest
from victims import fork, kill

from sf.machine import pinned_cores
from sf.machine.pinned_cores import PinnedCores

CORES = range(8)


@pytest.fixture
def pin(request):
    """Pins workers as runs of this test alone do."""
    prefix = f"sf-test-{os.getpid()}-{id(request)}"
    return lambda num_workers, cores=CORES: PinnedCores(cores, num_workers, prefix)


def cores_of(pinned, num_workers):
    return [pinned.of(idx) for idx in range(num_workers)]


def test_a_run_that_is_alone_has_a_core_for_each_worker(pin):
    assert cores_of(pin(8), 8) == list(CORES)


def test_a_second_run_takes_the_cores_that_the_first_has_left(pin):
    first, second = pin(3), pin(5)
    assert not set(cores_of(first, 3)) & set(cores_of(second, 5))


def test_more_workers_than_cores_are_spread_evenly(pin):
    first, second = pin(10), pin(6)
    used = Counter(cores_of(first, 10) + cores_of(second, 6))
    assert set(used.values()) == {2}


def test_the_cores_of_a_run_that_has_ended_are_free_again(pin):
    ended, stays = pin(4), pin(4)
    ended.release()
    assert set(cores_of(pin(4), 4)) == set(CORES) - set(cores_of(stays, 4))


def test_the_least_used_cores_are_taken_though_others_have_a_free_first_name(pin):
    first, second, third = pin(4), pin(4), pin(4)
    first.release()
    second.release()
    assert not set(cores_of(third, 4)) & set(cores_of(pin(4), 4))


def test_the_cores_of_a_run_that_was_killed_are_free_again(pin):
    reader, writer = os.pipe()

    def hold():
        held = pin(4)
        os.write(writer, b"x")
        signal.pause()
        held.release()

    pid = fork(hold)
    os.read(reader, 1)
    meanwhile = cores_of(pin(4), 4)
    kill(pid)
    assert meanwhile == [4, 5, 6, 7]
    assert cores_of(pin(4), 4) == [0, 1, 2, 3]


def test_without_a_list_of_names_cores_are_still_shared_out(pin, tmp_path, monkeypatch):
    monkeypatch.setattr(pinned_cores, "_NAMES", tmp_path / "hidden")
    first, second = pin(4), pin(4)
    assert not set(cores_of(first, 4)) & set(cores_of(second, 4))


def test_where_no_name_can_be_taken_each_worker_has_a_core_all_the_same(pin, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(socket, "socket", type("Refusing", (socket.socket,), {"bind": refuse}))
    assert cores_of(pin(10), 10) == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_a_run_keeps_to_the_cores_that_it_may_use(pin):
    pin(8)
    assert cores_of(pin(3, cores=(5, 6)), 3) == [5, 6, 5]
