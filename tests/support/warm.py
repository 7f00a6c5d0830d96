"""Commands of Python as `subprocess` runs them, forked from a process that has imported torch and the project already.

`Popen` and `run` are those of `subprocess`. A cold interpreter takes 4 seconds of a core before a run begins, and the
fork servers of the run 6 more; here all of them take milliseconds. The command is a child of the caller, with its own
arguments, descriptors, folder, variables, signals and main module. What only an interpreter that starts can show (a
flag of its own, a variable that it reads then, the imports themselves) is to be started by `subprocess`; what cannot
be started here is started cold, too.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import os
import pickle
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import process as multiprocessing_process
from multiprocessing import util as multiprocessing_util
from pathlib import Path
from unittest import mock

import cloudpickle

IMPORTS = ["torch._dynamo", "sf.run.trainer", "sf.run.plan", "sf.tools.commands.cli", "sf.rollout.worker"]
IMPORTS += ["sf.learner.worker", "sf.policy.worker", "sf.league.players.worker", "sf.evaluation.evaluator"]
IMPORTS += ["sf.evaluation.task"]
_OF_RUN = ["sf", "sf.tools.psro.command", "sf.tools.psro.exploit_command"]
_NUM_FORK_SERVERS = dict.fromkeys(_OF_RUN, 2) | {"sf.tools.commands.evaluate": 1, "sf.tools.report.league.command": 1}
# Variables that are read when an interpreter starts, or when what it has imported is.
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "KMP_", "MKL_", "TORCH", "PYTORCH", "CUDA_", "LATE_GPU_")
_PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")
_READ_WHERE_USED = ("TORCHINDUCTOR_CACHE_DIR", "TORCHELASTIC_", "TORCH_NCCL_ASYNC_ERROR_HANDLING")  # how names begin
_PR_SET_CHILD_SUBREAPER = 36
spawn_cold = multiprocessing_util.spawnv_passfds
_environ = {}  # of the server
_servers = []  # the one that runs, once it does


class Popen(subprocess.Popen):
    """starts_commands: what the command itself starts is warm, too, for which it has one process more below it."""

    def __init__(self, *args, starts_commands=False, **kwargs):
        self._starts_commands = starts_commands
        super().__init__(*args, **kwargs)

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more):
        _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, _, _, _, _, umask, in_session, *_ = more
        words = [] if isinstance(args, str) else [os.fspath(word) for word in args]
        is_unbuffered = words[1:2] == ["-u"]
        command = Command(
            words[1 + is_unbuffered :],
            is_unbuffered=is_unbuffered,
            environ=dict(os.environ if env is None else env),
            folder=os.fspath(cwd or os.getcwd()),
            in_session=in_session,
            before=None if preexec_fn is None else _by_value(preexec_fn),
            starts_commands=self._starts_commands,
        )
        is_plain = words[:1] == [sys.executable] and not (executable or pass_fds or shell) and umask < 0
        if not (is_plain and command.can_be_warm):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more)
            return
        fds = [own if fd < 0 else fd for own, fd in enumerate((p2cread, c2pwrite, errwrite))]
        self.pid = _start(command, fds)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


@dataclass
class Command:
    words: list[str]
    environ: dict[str, str]
    folder: str
    is_unbuffered: bool = False
    in_session: bool = False
    before: bytes | None = None
    starts_commands: bool = False
    ignored: Sequence[int] = ()
    blocked: Sequence[int] = ()
    fds: Sequence[int] = (0, 1, 2)  # which ones it is to have
    cores: set[int] = field(default_factory=lambda: os.sched_getaffinity(0))
    max_fds: tuple[int, int] = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE))

    @classmethod
    def of_fork_server(cls, args, fds):
        ignored = [s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return cls(args[-2:], dict(os.environ), os.getcwd(), ignored=ignored, blocked=blocked, fds=[0, 1, 2, *fds])

    @property
    def can_be_warm(self):
        if not self.words or not os.path.isdir(self.folder):
            return False
        first = self.words[0]
        is_program = first in ("-m", "-c") or (first[0] != "-" and os.path.isfile(os.path.join(self.folder, first)))
        return is_program and _read_at_start(self.environ) == _read_at_start(_environ)

    @property
    def num_fork_servers(self):
        if _is_fork_server(self.words):
            return 0
        return _NUM_FORK_SERVERS.get(self.words[1], 0) if self.words[0] == "-m" else 2


def begin():
    """Take the environment of now for the server, and start the fork servers of this process there."""
    _environ.update(os.environ)
    multiprocessing_util.spawnv_passfds = spawnv_passfds


def run(*args, **kwargs):
    with everywhere():
        return subprocess.run(*args, **kwargs)  # noqa: PLW1510


def everywhere():
    """What is started by `subprocess` while this is open is started here."""
    return mock.patch.object(subprocess, "Popen", Popen)


def spawnv_passfds(path, args, passfds):
    """As that of multiprocessing, for the fork servers of this process."""
    environ = dict(os.environ)
    if _is_fork_server(args) and _read_at_start(environ)[0] == _read_at_start(_environ)[0]:
        command = Command.of_fork_server(args, passfds)
        return _start(command, command.fds)
    return spawn_cold(path, args, passfds)


def _is_fork_server(words):
    """The interpreter's flags before them are those of this process, and so those of the server."""
    return "'sf.system.processes.preload'" in words[-1]


def _start(command, fds):
    """Returns the id of its process, a child of this one."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the middle process leaves the command to this one
    try:
        _send(_server(), vars(command), fds)
        return _receive(_server())[0]
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _by_value(function):
    """What a process needs to call it that has none of the modules of tests and scripts."""
    module = sys.modules[getattr(function, "func", function).__module__]
    if module.__name__.startswith("sf."):
        return cloudpickle.dumps(function)
    cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(function)
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _read_at_start(environ):
    names = {name for name in environ if name.startswith(_READ_AT_START) and not name.startswith(_READ_WHERE_USED)}
    read = {name: environ[name] for name in names.difference(_PATHS)}
    folders = environ.get("PYTHONPATH", "").split(os.pathsep)
    return read, [folder for folder in folders if os.path.exists(os.path.join(folder, "sitecustomize.py"))]


def _server():
    if _servers:
        return _servers[0]
    ours, theirs = socket.socketpair()
    with theirs:
        fd = theirs.fileno()
        command = [sys.executable, __file__, str(fd), " " * 2000]  # room for what the commands are called
        environ = {**_environ, "ROOM": " " * 2000}  # for the variables of the commands
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ, pass_fds=[fd])
    _servers.append(ours)
    return ours


def _send(to, what, fds=()):
    data = pickle.dumps(what)
    socket.send_fds(to, [len(data).to_bytes(8, "little")], fds)
    to.sendall(data)


def _receive(source):
    """What was sent, and the descriptors. Ends this process where the other one has ended."""
    head, fds, *_ = socket.recv_fds(source, 8, 256)
    if not head:
        os._exit(0)
    data = b""
    while missing := int.from_bytes(head, "little") - len(data):
        data += source.recv(missing)
    return pickle.loads(data), fds


def _serve(commands):
    """Fork a process for each command, and return in it what it is to do."""
    while True:
        what, fds = _receive(commands)
        reader, writer = os.pipe()
        middle = os.fork()
        if middle:
            os.close(writer)
            pid = int.from_bytes(os.read(reader, 8), "little")
            os.waitpid(middle, 0)
            for fd in (reader, *fds):
                os.close(fd)
            _send(commands, pid)
            continue
        middle = os.getpid()
        pid = os.fork()
        if pid:
            os.write(writer, pid.to_bytes(8, "little"))
            os._exit(0)
        while os.getppid() == middle:
            os.sched_yield()
        for fd in (reader, writer, commands.detach()):
            os.close(fd)
        command = Command(**what)
        if command.in_session:
            os.setsid()
        _place(fds, command.fds)
        return command


def _serve_further(command):
    """Give this process a server of its own, in which this returns the next command."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        _servers[:] = [ours]
        subprocess.Popen = Popen
        return command
    ours.close()
    null = os.open(os.devnull, os.O_RDWR)
    _place([null, os.dup(null), os.dup(null)], range(3))
    return _serve(theirs)


def _place(fds, at):
    """Move descriptors to where the program expects them."""
    above = max(at) + 16
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, above) for fd in fds]
    for fd in fds:
        os.close(fd)
    for fd, target in zip(moved, at, strict=True):
        os.dup2(fd, target)
        os.close(fd)


def _limit(command):
    os.sched_setaffinity(0, command.cores)
    resource.setrlimit(resource.RLIMIT_NOFILE, command.max_fds)


def _show(words, environ):
    """What /proc says of this process, where tests look for those of a run. C has copied the variables from there."""
    places = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:49])
    variables = [f"{name}={value}" for name, value in environ.items()]
    for texts, start, end in zip((words, variables), places, places, strict=False):
        shown = "\0".join(texts).encode(errors="surrogateescape")[: end - start - 1]
        ctypes.memmove(start, shown.ljust(end - start, b"\0"), end - start)


def _become(command, base_path):
    """What an interpreter does before it runs the program."""
    words, environ = [sys.executable, *["-u"] * command.is_unbuffered, *command.words], command.environ
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(environ)
    _show(words, environ)
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        at_once = old.write_through or command.is_unbuffered  # the first by PYTHONUNBUFFERED
        raw = buffer = open(fd, "wb" if fd else "rb", buffering=0, closefd=False)  # noqa: SIM115
        raw.name = f"<{name}>"
        if not (fd and at_once):
            buffer = io.BufferedWriter(raw) if fd else io.BufferedReader(raw)
        by_line = not at_once and (fd == 2 or raw.isatty())
        new = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n" if fd else None, by_line, at_once)
        new.mode = "w" if fd else "r"
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    sys.orig_argv = words
    of_variable = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = dict.fromkeys([*map(os.path.abspath, of_variable), *base_path])
    importlib.invalidate_caches()
    multiprocessing_process.ORIGINAL_DIR = os.getcwd()
    sys.modules["numpy"].random.seed()
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    return main


def _run(words, main):
    is_safe = sys.version_info >= (3, 11) and os.environ.get("PYTHONSAFEPATH")
    first = {"-m": os.getcwd(), "-c": ""}.get(words[0], os.path.dirname(os.path.realpath(words[0])))
    sys.path[:0] = [] if is_safe else [first]
    sys.argv = words if words[0][0] != "-" else [words[0], *words[2:]]
    if words[0] == "-m":
        sys.modules.pop(words[1], None)
        runpy._run_module_as_main(words[1])
        return
    if words[0] == "-c":
        code = compile(words[1], "<string>", "exec")
    else:
        main.__file__, main.__cached__ = os.path.abspath(words[0]), None
        code = compile(Path(words[0]).read_bytes(), main.__file__, "exec")
    exec(code, main.__dict__)


class _ForkServers:
    """Processes that a run takes for its fork servers: they have imported what those need, and nothing of the user."""

    def __init__(self):
        self._waiting = []

    def prepare(self, command):
        """Returns the command; in a fork server, once it is to start, its own."""
        for _ in range(command.num_fork_servers):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if not pid:
                for other in (ours, *(other for _, other in self._waiting)):
                    other.close()
                what, fds = _receive(theirs)
                theirs.close()
                _place(fds, what["fds"])
                return Command(**what)
            theirs.close()
            self._waiting.append((pid, ours))
        multiprocessing_util.spawnv_passfds = self.spawnv_passfds
        return command

    def spawnv_passfds(self, path, args, passfds):
        if not self._waiting or not _is_fork_server(args):
            return spawn_cold(path, args, passfds)
        pid, to = self._waiting.pop(0)
        with to:
            try:
                command = Command.of_fork_server(args, passfds)
                _send(to, vars(command), command.fds)
            except OSError:  # somebody has killed it, or there is no folder
                return spawn_cold(path, args, passfds)
        return pid


def _main():
    _environ.update(os.environ)
    of_variable = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    base_path = [folder for folder in sys.path[1:] if folder not in of_variable]
    commands = socket.socket(fileno=int(sys.argv[1]))
    del sys.path[0]
    gc.disable()
    for name in IMPORTS:
        importlib.import_module(name)
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1, "what is forked from threads may hang"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all

    command = _serve(commands)
    while command.starts_commands:
        command.starts_commands = False
        command = _serve_further(command)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _limit(command)
    if command.before is not None:
        pickle.loads(command.before)()
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    run = command
    command = _ForkServers().prepare(run)
    if command is not run:
        _limit(command)
    for signum in command.ignored:
        signal.signal(signum, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, command.blocked)
    main = _become(command, base_path)
    if command is run:
        gc.enable()
    _end(_status(command.words, main), main)


def _status(words, main):
    try:
        _run(words, main)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code.co_filename in (__file__, runpy.__file__):
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    else:
        return 0
    return 1


def _end(status, main):
    """As the interpreter, but for the modules: to take all of them apart is most of what a short command costs."""
    threading._shutdown()
    atexit._run_exitfuncs()
    main.__dict__.clear()
    gc.collect()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        sys.exit(status)  # the interpreter says so in its own way
    os._exit(status & 0xFF)


if __name__ == "__main__":
    _main()
