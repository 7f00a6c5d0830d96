"""The cores that a process may use, and those that workers are pinned to."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from victims import fork, kill

from sf.system.machine import cores
from sf.system.machine.cores import PinnedCores, cpu_quota, num_usable_cores, shares


@pytest.fixture
def groups(tmp_path):
    """Writes files of control groups: the line of the process, and by path what they hold."""

    def write(of_process, **files):
        (tmp_path / "self").write_text(of_process)
        for name, text in files.items():
            path = tmp_path / "fs" / name.replace("__", "/").replace("_max", ".max").replace("cpu_cfs", "cpu.cfs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "fs", tmp_path / "self"

    return write


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert cpu_quota(tmp_path, tmp_path / "none") is None


FIRST_VERSION = {"cpu__job__cpu_cfs_quota_us": "150000", "cpu__job__cpu_cfs_period_us": "100000"}
FIRST_VERSION |= {"cpu__cpu_cfs_quota_us": "-1", "cpu__cpu_cfs_period_us": "100000"}
ON_THE_WAY = {"a__cpu_max": "400000 100000", "a__b__cpu_max": "800000 100000", "a__b__c__cpu_max": "max 100000"}


@pytest.mark.parametrize(
    ("of_process", "files", "quota"),
    [
        ("0::/\n", {"cpu_max": "250000 100000\n"}, 2.5),
        ("0::/\n", {"cpu_max": "max 100000\n"}, None),
        ("0::/a/b/c\n", ON_THE_WAY, 4.0),  # the smallest on the way to the root
        ("0::/docker/8f1c\n", {"cpu_max": "300000 100000"}, 3.0),  # a container sees its group as the root
        ("5:cpuacct,cpu:/job\n3:memory:/job\n", FIRST_VERSION, 1.5),
    ],
)
def test_the_quota_of_the_control_groups_counts(groups, of_process, files, quota):
    assert cpu_quota(*groups(of_process, **files)) == quota


@pytest.mark.parametrize(("quota", "number"), [(None, 8), (2.5, 3), (0.1, 1), (64.0, 8)])
def test_a_run_uses_as_many_cores_as_it_is_granted(monkeypatch, quota, number):
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
    monkeypatch.setattr(cores, "usable_cores", lambda: tuple(range(8)))
    assert num_usable_cores() == number


@pytest.mark.parametrize(("num_cores", "num_shares"), [(2, 2), (64, 3), (7, 7), (10, 4)])
def test_shares_are_disjoint_even_and_use_every_core(num_cores, num_shares):
    of_places = shares(range(num_cores), num_shares, num_cores)
    assert sorted(core for share in of_places for core in share) == list(range(num_cores))
    sizes = {len(share) for share in of_places}
    assert max(sizes) - min(sizes) <= 1


def test_more_shares_than_cores_are_spread_over_the_cores():
    of_places = shares((4, 9), 5, 2)
    assert len(of_places) == 5
    assert sorted(Counter(of_places).values()) == [2, 3]


def test_shares_of_a_quota_are_parts_of_it():
    of_places = shares(range(64), 2, 8)
    assert [len(share) for share in of_places] == [4, 4]
    assert not set(of_places[0]) & set(of_places[1])


CORES = range(8)


@pytest.fixture
def pin(request):
    """Pins workers as runs of this test alone do."""
    prefix = f"sf-test-{os.getpid()}-{id(request)}"
    return lambda num_workers, cores=CORES: PinnedCores(cores, num_workers, prefix)


def cores_of(pinned, num_workers):
    return [pinned.of(idx) for idx in range(num_workers)]


def test_workers_of_several_runs_are_spread_evenly(pin):
    assert cores_of(pin(8), 8) == list(CORES)
    first, second = pin(3), pin(5)
    assert not set(cores_of(first, 3)) & set(cores_of(second, 5))
    first, second = pin(10), pin(6)  # more than there are cores
    assert set(Counter(cores_of(first, 10) + cores_of(second, 6)).values()) == {2}


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


def test_a_run_keeps_to_the_cores_that_it_may_use(pin):
    pin(8)
    assert cores_of(pin(3, cores=(5, 6)), 3) == [5, 6, 5]
