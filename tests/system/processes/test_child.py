"""What the parent hears of a child, and what it makes of its end."""

import os
import sys
import traceback
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from sf.system.messages import say
from sf.system.processes import child as children
from sf.system.processes.child import Child
from sf.system.processes.reports import Episodes, Failed, Ready, Reports, Say


@pytest.fixture
def pipe():
    reader, writer = Pipe(duplex=False)
    yield reader, writer
    reader.close()
    writer.close()


def test_reports_arrive_whole_and_in_their_order(pipe):
    reader, writer = pipe
    child, reports = Child("rollout", 0, SimpleNamespace(), reader), Reports(writer)
    assert child.receive() == []
    reports.send(Episodes([[1.5, 8]], lost_episodes=2, absent=[]))
    reports.send(Say("two\nlines"))
    assert child.receive() == [Episodes([[1.5, 8]], lost_episodes=2, absent=[]), Say("two\nlines")]


def test_half_a_report_is_not_waited_for(pipe):
    reader, writer = pipe
    child = Child("rollout", 0, SimpleNamespace(), reader)
    os.write(writer.fileno(), b'{"kind": "Rea')
    assert child.receive() == []
    os.write(writer.fileno(), b'dy"}\n')
    assert child.receive() == [Ready()]


def test_the_pipe_is_closed_at_its_end_and_what_was_half_written_is_dropped(pipe):
    reader, writer = pipe
    child = Child("rollout", 0, SimpleNamespace(), reader)
    os.write(writer.fileno(), b'{"kind": "Ready"}\n{"kind": "Epi')
    writer.close()
    assert child.receive() == [Ready()]
    assert child.connection.closed
    assert child.receive() == []


@pytest.mark.parametrize(
    ("exitcode", "hung_for_s", "error", "cause"),
    [
        (-9, None, None, "died of SIGKILL"),
        (-40, None, None, "died of signal 40"),
        (-9, 12.4, None, "made no progress for 12 s (--worker_timeout_s) and was killed"),
        (3, None, None, "ended with exit code 3"),
        (1, None, Failed("no door", False, False, "Traceback: ..."), "no door\n\nTraceback: ..."),
    ],
)
def test_the_cause_of_a_death_is_said_in_words(pipe, exitcode, hung_for_s, error, cause):
    process = SimpleNamespace(exitcode=exitcode)
    child = Child("rollout", 0, process, pipe[0], hung_for_s=hung_for_s, error=error)
    assert child.cause_of_death() == cause


def _greet(reports):
    say("hello")


def test_a_child_whose_parent_has_died_ends_without_a_word(pipe, capfd):
    """Its parent's end of the pipe closes a moment before the child is killed."""
    reader, writer = pipe
    reader.close()
    pid = os.fork()
    if pid == 0:
        sys.modules["sf.system.processes.preload"] = SimpleNamespace(PID=os.getppid())
        status = 3
        try:
            children._run("player-0", os.environ, writer, _greet, ())
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert capfd.readouterr().err == ""
