"""However a command is ended from outside, it says nothing but what helps, and has a status that says why."""

import errno
import importlib
import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stderr

import make_flags_page
import pytest

from sf.commands import ends

PROGRAMS = make_flags_page.entry_points()
WORDS = {  # that let a command come to where it imports what it works with
    "sf-train": ["--env", "toy_bandit", "--device", "cpu", "--train_dir", ".", "--train_for_env_steps", "1"],
    "sf-bench": ["--env", "toy_bandit", "--device", "cpu", "--seconds", "1"],
    "sf-sweep": ["none.yaml"],
    "sf-tune": ["none.yaml"],
    "sf-envs": ["doom"],
}
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


def interrupted(program, at, folder):
    """The status of the command in a shell, which counts an end by the signal itself as 130, too, and what it says."""
    (folder / "sitecustomize.py").write_text(INTERRUPTED_AT_AN_IMPORT)
    done = subprocess.run(
        [sys.executable, "-c", code_of(program), *WORDS.get(program, ["none"])],
        env={"PATH": "", "PYTHONPATH": str(folder), "INTERRUPTED_AT": at},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_ctrl_c_while_a_command_imports_its_flags_ends_it_quietly(program, tmp_path):
    assert interrupted(program, "sf.commands.cli", tmp_path) == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize("at", ["numpy", "tyro", "torch", pytest.param("torch.nn", marks=pytest.mark.long)])
def test_ctrl_c_while_a_library_is_imported_ends_a_command_quietly(at, tmp_path):
    assert interrupted("sf-train", at, tmp_path) == (128 + signal.SIGINT, "", "")


def ended(body):
    """The status with which a command ends whose work is `body`."""
    with pytest.raises(SystemExit) as end, ends.quiet_end():
        body()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return end.value.code


class Dropping:
    """Its end is a callback, in which Python drops what is raised."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_python_drops_in_a_callback_is_raised_again(capsys):
    def work():
        Dropping()
        threading.Event().wait(60)

    assert (ended(work), *capsys.readouterr()) == (128 + signal.SIGINT, "", "")


def test_an_interrupt_that_python_drops_in_a_callback_is_raised_again_at_the_next_import(capsys, monkeypatch):
    def work():
        Dropping()
        importlib.import_module("this")

    monkeypatch.delitem(sys.modules, "this", raising=False)
    assert (ended(work), *capsys.readouterr()) == (128 + signal.SIGINT, "", "")


def test_an_error_that_a_library_makes_of_an_interrupt_is_not_reported(capsys):
    def work():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("the C extension is broken") from None

    assert (ended(work), capsys.readouterr().err) == (128 + signal.SIGINT, "")


INTERRUPTED_AT_ITS_END = """
import atexit, os, signal
from contextlib import nullcontext

from sf.processes.interrupt import keeps_the_status_of_a_signal

def interrupt(kill=os.kill, pid=os.getpid(), signum=signal.SIGINT):
    kill(pid, signum)

class AtTheVeryEnd:
    def __del__(self, interrupt=interrupt):
        interrupt()

with {context}:
    last = AtTheVeryEnd()
    {at_exit}
    atexit.register(print, "saved", flush=True)
    raise SystemExit({status})
"""


@pytest.mark.parametrize("at_exit", ["", "atexit.register(interrupt)"])
def test_another_ctrl_c_while_python_ends_changes_no_status(at_exit):
    def status_and_output(context, status):
        code = INTERRUPTED_AT_ITS_END.format(context=context, at_exit=at_exit, status=status)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    interrupted = 128 + signal.SIGINT
    assert status_and_output("keeps_the_status_of_a_signal()", interrupted) == (interrupted, "saved\n")
    assert status_and_output("nullcontext()", interrupted)[0] == -signal.SIGINT  # what it is for
    assert status_and_output("keeps_the_status_of_a_signal()", 0)[0] == -signal.SIGINT  # any other end is Python's own


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


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_that_is_not_read_to_its_end_ends_quietly(program):
    assert into(unread(), program, "--help") == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_for_which_the_disk_has_no_room_is_one_sentence(program):
    sentence = "standard output cannot be written (No space left on device): write to another place"
    assert into("/dev/full", program, "--help") == (1, f"error: {sentence}\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("is_full", "status"), [(True, 1), (False, 128 + signal.SIGPIPE)])
def test_nothing_is_left_for_python_to_complain_about_at_its_end(is_full, status, unbuffered):
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
    assert done.returncode == status
    assert len(done.stderr.splitlines()) == is_full, done.stderr


PRINTING = "from sf.commands import ends\nwith ends.quiet_end():\n    "


def printed(line, stdout=subprocess.PIPE, **environment):
    """The status of a command that does this, and its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", PRINTING + line],
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    return done.returncode, done.stdout


def test_a_table_that_is_not_read_to_its_end_ends_quietly():
    line = "from sf.metrics.display.console import OutputConsole; OutputConsole().print('a table')"
    with open(unread(), "w") as output:
        assert printed(line, stdout=output)[0] == 128 + signal.SIGPIPE


def test_a_command_that_has_failed_keeps_its_status_where_nobody_reads_what_it_said():
    with open(unread(), "w") as output:
        assert printed("print('3 runs failed'); raise SystemExit(3)", stdout=output)[0] == 3


def test_characters_that_standard_output_lacks_are_written_out_and_bytes_of_paths_stay():
    for encoding, written in (("latin-1", b"td_\\u6f22 \xff"), ("utf-8", b"td_\xe6\xbc\xa2 \xff")):
        line = r"print('td_\u6f22 \udcff')"
        assert printed(line, PYTHONIOENCODING=encoding) == (0, written + b"\n")


@pytest.mark.parametrize("program", ["sf-envs", "sf-train"])
def test_streams_that_are_closed_are_no_reason_to_fail(program, tmp_path):
    words = ["sf-envs", "toy_bandit", "--seconds", "0"] if program == "sf-envs" else ["sf-train", "--help"]
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" >&- 2>&-', "-", sys.executable, "-c", code_of(program), *words[1:]],
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0


def test_a_file_that_is_opened_takes_the_place_of_no_closed_stream():
    line = "import os; fd = os.open(os.devnull, os.O_RDONLY); sys.stdout.write('x'); sys.exit(fd)"
    code = f"import sys\n{PRINTING}{line}"
    done = subprocess.run(["bash", "-c", 'exec "$@" >&-', "-", sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode > 2


def test_an_error_of_another_file_is_not_blamed_on_standard_output():
    def fails():
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"), ends.quiet_end():
        fails()


def test_a_working_directory_that_was_removed_is_one_sentence(tmp_path):
    (tmp_path / "gone").mkdir()
    words = [*WORDS["sf-train"], "--train_dir", str(tmp_path / "runs")]
    done = subprocess.run(
        ["bash", "-c", 'rmdir "$PWD"; exec "$@"', "-", sys.executable, "-c", code_of("sf-train"), *words],
        cwd=tmp_path / "gone",
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: the working directory was removed: change to one that exists (cd), and start again\n"


def test_a_missing_file_is_not_blamed_on_the_working_directory():
    with pytest.raises(FileNotFoundError, match="missing"), ends.exit_status():
        open("missing")  # noqa: SIM115
