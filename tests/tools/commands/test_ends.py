"""However a command is ended from outside, it says nothing but what helps, and has a status that says why."""

import errno
import importlib
import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr

import make_flags_page
import pytest

from sf.tools.commands import ends

PROGRAMS = make_flags_page.entry_points()
OF_EACH_KIND = ("sf-train", "sf-envs")  # sf/__main__.py, and sf/tools/commands/entry_points.py
INTERRUPTED_AT_AN_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


def code_of(program):
    """As pip writes it into the file of the command."""
    module, function = PROGRAMS[program].split(":")
    return f"import sys; from {module} import {function} as main; sys.exit(main())"


@pytest.mark.parametrize("program", OF_EACH_KIND)
def test_ctrl_c_while_a_command_imports_its_flags_ends_it_quietly(program, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_AT_AN_IMPORT)
    done = subprocess.run(
        [sys.executable, "-c", code_of(program), "none"],
        env={"PATH": "", "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}", "INTERRUPTED_AT": "tyro"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell counts a signal
    assert (status, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def into(output, program, *words):
    """The status of a command that writes to `output`, a file or a descriptor, and what it says on standard error."""
    module, function = PROGRAMS[program].split(":")
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as said, open(output, "w") as opened:
        patch.setattr(sys, "argv", [program, *words])
        patch.setattr(sys, "stdout", opened)
        with pytest.raises(SystemExit) as end:
            getattr(importlib.import_module(module), function)()
    return end.value.code, said.getvalue()


def unread():
    """A descriptor that nobody reads from."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("program", OF_EACH_KIND)
def test_help_that_is_not_read_to_its_end_or_finds_no_room_ends_with_at_most_one_sentence(program):
    assert into(unread(), program, "--help") == (128 + signal.SIGPIPE, "")
    status, said = into("/dev/full", program, "--help")
    assert status == 1
    assert said.startswith("error: [Errno 28]")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("is_full", "unbuffered"), [(True, ""), (False, "1")])
def test_nothing_is_left_for_python_to_complain_about_at_its_end(is_full, unbuffered):
    with open("/dev/full" if is_full else unread(), "w") as output:
        done = subprocess.run(
            [sys.executable, "-c", code_of("sf-envs"), "--help"],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == (1 if is_full else 128 + signal.SIGPIPE)
    assert len(done.stderr.splitlines()) == is_full, done.stderr


def test_a_broken_pipe_of_another_kind_is_an_error(capsys):
    with pytest.raises(BrokenPipeError), ends.quiet_end():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
