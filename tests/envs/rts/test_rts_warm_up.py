"""The lock of the first start, which compiles the engine."""

from __future__ import annotations

import errno
import fcntl

from sf.envs.rts.engine.warm_up import _alone


def test_a_disk_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def flock(lock, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", flock)
    with _alone():
        pass


def test_the_lock_of_the_first_start_lies_in_the_users_cache_and_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("whole")
    with _alone():
        assert (tmp_path / "sf" / "rts.lock").exists()
    (tmp_path / "sf" / "rts.lock").unlink()
    (tmp_path / "sf" / "rts.lock").symlink_to(victim)
    with _alone():  # without a lock
        assert victim.read_text() == "whole"
