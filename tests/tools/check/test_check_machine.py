"""The probes of the machine: each passes here, and notices what may be missing elsewhere."""

import errno
import os
import shutil
from collections import namedtuple

import pytest
from packaging.requirements import Requirement

from sf.config import Config
from sf.tools.check import machine
from sf.tools.check.command import needs_of
from sf.tools.check.probe import ProbeError

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def needs(tmp_path):
    return needs_of(Config().replace(train_dir=str(tmp_path / "runs"), num_workers=2))


PROBES = [machine.shared_memory, machine.descriptors, machine.pipes, machine.death_signal, machine.writing, machine.shm]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_it_passes_here_and_leaves_nothing(probe, needs, tmp_path):
    descriptors = len(os.listdir("/proc/self/fd"))
    assert probe(needs)
    assert not list(tmp_path.iterdir())
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 4  # of the probe of the death signal, whose process ends


def test_what_the_machine_does_not_grant_is_noticed(needs, tmp_path, monkeypatch):
    def refuse(capacity):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (64, 64))
    with pytest.raises(ProbeError, match="2 workers need about 94, and the"):
        machine.descriptors(needs)
    monkeypatch.setattr(machine, "PipeQueue", refuse)
    with pytest.raises(ProbeError, match=r"Operation not permitted.*pipe-user-"):
        machine.pipes(needs)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 1 << 40, 1000))
    with pytest.raises(ProbeError, match="GiB left"):
        machine.writing(needs)
    with pytest.raises(ProbeError, match="0 KiB are free, and 16 Doom"):
        machine.shm(needs)
    monkeypatch.setattr(machine.os, "access", lambda path, how: False)
    with pytest.raises(ProbeError, match=f"{tmp_path} cannot be written"):
        machine.writing(needs)


def test_a_kernel_that_lets_children_outlive_their_parent_is_noticed(needs, monkeypatch):
    monkeypatch.setattr(machine, "die_with_creator", lambda: None)
    monkeypatch.setattr(machine, "_DEATH_WITHIN_MS", 50.0)
    with pytest.raises(ProbeError, match="outlived its parent"):
        machine.death_signal(needs)


@pytest.mark.parametrize("granted", [1.5, None])
def test_less_time_than_that_of_all_cores_is_noticed(granted, needs, monkeypatch):
    monkeypatch.setattr(machine.machine_cores, "cpu_quota", lambda: granted)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    if granted is None:
        assert machine.cpu_quota(needs) == "all the time of 3 cores"
    else:
        with pytest.raises(ProbeError, match=f"the time of {granted:g} is granted"):
            machine.cpu_quota(needs)


def test_versions_that_are_not_asked_for_are_named():
    assert machine._complaint(Requirement("numpy>=1")) is None
    assert "numpy is " in machine._complaint(Requirement("numpy<1"))
    assert machine._complaint(Requirement("no-such-package>=1")) == "no-such-package is missing"
    names = {requirement.name for requirement in machine._requirements()}
    assert {"torch", "vizdoom"} <= names
    assert "pytest" not in names
