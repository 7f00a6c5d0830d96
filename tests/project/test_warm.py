"""A command that `tests/support/warm.py` starts is as one of a new interpreter."""

import os
import subprocess
import sys

import pytest
import warm

STATE = """
import os, signal, sys
print(sys.argv, sys.orig_argv, sys.path, os.getcwd(), os.getppid(), os.environ.get("ASKED"), os.sched_getaffinity(0))
print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)], signal.pthread_sigmask(0, ()))
print(__name__, sys.modules["__main__"].__dict__ is globals(), sys.stdin.read(), os.getsid(0) == os.getpid())
print(b"ASKED=yes" in open("/proc/self/environ", "rb").read().split(b"\\0"))
streams = (sys.stdin, sys.stdout, sys.stderr)
print([(each.name, each.encoding, each.errors, each.line_buffering, each.write_through) for each in streams])
"""


def outcomes(*words, **kwargs):
    kwargs |= {"input": "typed", "capture_output": True, "text": True, "check": False}
    return [run([sys.executable, *words], **kwargs) for run in (subprocess.run, warm.run)]


def test_a_program_finds_the_state_of_a_new_interpreter(tmp_path):
    (tmp_path / "state.py").write_text(STATE)
    programs = (["-c", STATE, "a"], False), (["-u", "-c", STATE, "a"], False)
    for words, in_session in (*programs, (["state.py", "a"], True), (["-m", "state", "a"], False)):
        env = {**os.environ, "ASKED": "yes"}
        cold, warmed = outcomes(*words, cwd=tmp_path, env=env, start_new_session=in_session)
        assert (cold.stdout, cold.returncode, cold.stderr) == (warmed.stdout, 0, "")


@pytest.mark.parametrize("end", ["1 / 0", "sys.exit(3)", "sys.exit('why')", "os.kill(os.getpid(), 9)"])
def test_a_program_ends_as_in_a_new_interpreter(end):
    cold, warmed = outcomes("-c", f"import os, sys\n{end}")
    assert (cold.returncode, cold.stdout, cold.stderr) == (warmed.returncode, warmed.stdout, warmed.stderr)
