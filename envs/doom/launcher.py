"""Becomes the ViZDoom engine, after making sure that neither it nor its shared memory can outlive its owner.

ViZDoom forks and executes its engine, and forgets about it when its own process is killed: the engine runs
on, and its files, /dev/shm/ViZDoom*, stay. So `sf.envs.doom.engine` has ViZDoom execute this script in the
engine's place, with a bare interpreter (standard library only, `-I -S`), as

    launcher.py OWNER_PID OUR_FD OWNER_FD JOIN_LIMIT_S NAMESPACES ENGINE_PATH [arguments that ViZDoom gives its engine]

- The kernel kills the engine when the thread that forked it ends; that is ViZDoom's own thread, which waits
  for the engine and so lives as long as its process.
- A sweeper, a process that lives for the time of the start-up, removes the names of the files as soon as
  nobody needs them: either both sides have mapped them (the owner writes into its end of the socket pair
  OUR_FD, OWNER_FD), or owner and engine, which hold that end, are both dead (end of file). What it cannot cover
  is a kill of the whole process group in the 30 ms before this script runs: two files of 10 KiB stay.
- The engine gets a session of its own: Ctrl-C in a terminal is for the owner, which then closes the engine.
- The owner reads the process id, with which it can end an engine that hangs, from the socket pair.

NAMESPACES are file numbers, joined by commas, of a user namespace and its network that the engine enters: none, or
those of `sf.envs.doom.matches.network`.

With a JOIN_LIMIT_S above 0 the engine is to join a network game. Where that fails, it ends before it has opened
its shared memory, which ViZDoom 1.3 answers with a null pointer: its whole process, the owner, would crash. So
this process stays between the two: it forks the engine, and where that ends, or hangs, before the owner says that
it is there, becomes an engine that plays alone, which the owner can tell from one that has joined, and close.
"""

import contextlib
import ctypes
import glob
import os
import select
import shutil
import signal
import sys

PR_SET_PDEATHSIG = 1
BOTS_PATH = "+viz_bots_path"  # followed by its value, as are these:
NETWORK_ARGS = ("-host", "-port", "-join")


def main() -> None:
    owner_pid, our_fd, owner_fd = (int(argument) for argument in sys.argv[1:4])
    join_limit_s = float(sys.argv[4])
    namespaces = [int(fd) for fd in sys.argv[5].split(",") if fd]
    engine_path, *engine_args = sys.argv[6:]
    instance_id = engine_args[engine_args.index("+viz_instance_id") + 1]
    os.setsid()
    close_all_but(our_fd, owner_fd, *namespaces)
    take_bots_file(engine_args)
    enter(namespaces)  # before the kernel is told what this process dies with: it forgets that here
    # The engine insists on making a folder _vizdoom where it starts: not in the user's working directory.
    start_folder = f"/dev/shm/ViZDoomFolder{instance_id}"
    os.mkdir(start_folder, mode=0o700)
    start_sweeper(our_fd, owner_fd, instance_id, start_folder)
    die_with(owner_pid)
    os.write(our_fd, b"%d\n" % os.getpid())
    os.chdir(start_folder)
    if join_limit_s > 0:
        join(our_fd, join_limit_s, engine_path, engine_args)
        engine_args = without_network(engine_args)
    os.close(our_fd)
    os.execv(engine_path, [engine_path, *engine_args])


def take_bots_file(engine_args: list[str]) -> None:
    """Open the owner's file in memory: from another namespace the engine may not."""
    if BOTS_PATH in engine_args:
        where = engine_args.index(BOTS_PATH) + 1
        fd = os.open(engine_args[where], os.O_RDONLY)
        os.set_inheritable(fd, True)
        engine_args[where] = f"/proc/self/fd/{fd}"


def enter(namespaces: list[int]) -> None:
    for fd in namespaces:
        if ctypes.CDLL(None).setns(fd, 0) != 0:
            sys.exit("setns failed")
        os.close(fd)


def close_all_but(*fds: int) -> None:
    """Close what an engine that is started at the same time, by another thread, is to inherit: it would never end."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in fds:
            with contextlib.suppress(OSError):  # the directory itself
                os.close(int(name))


def start_sweeper(our_fd: int, owner_fd: int, instance_id: str, start_folder: str) -> None:
    """Forked twice, so that init reaps it: the engine would not."""
    child_pid = os.fork()
    if child_pid > 0:
        os.waitpid(child_pid, 0)
        return
    if os.fork() > 0:
        os._exit(0)
    os.close(owner_fd)
    with contextlib.suppress(ConnectionResetError):  # the end of file, where nobody has read our process id
        os.read(our_fd, 1)
    shutil.rmtree(start_folder, ignore_errors=True)
    for path in glob.glob(f"/dev/shm/ViZDoom*{instance_id}"):
        with contextlib.suppress(FileNotFoundError):  # ViZDoom removes them too, where it is closed in order
            os.unlink(path)
    os._exit(0)


def die_with(parent_pid: int) -> None:
    """Have the kernel kill this process with its parent."""
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:  # it died before the kernel was told to watch it
        sys.exit(1)


def join(our_fd: int, limit_s: float, engine_path: str, engine_args: list[str]) -> None:
    """Run an engine that joins a network game, until it ends. Returns only where it has not joined."""
    pid = os.getpid()
    engine_pid = os.fork()
    if engine_pid == 0:
        die_with(pid)
        os.close(our_fd)
        null_fd = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # it prints its connection, and would take a key for an answer
            os.dup2(null_fd, fd)
        os.execv(engine_path, [engine_path, *engine_args])
    ready, _, _ = select.select([our_fd, os.pidfd_open(engine_pid)], [], [], limit_s)
    if our_fd in ready:
        os.waitpid(engine_pid, 0)
        os._exit(0)
    os.kill(engine_pid, signal.SIGKILL)
    os.waitpid(engine_pid, 0)


def without_network(engine_args: list[str]) -> list[str]:
    """Returns the arguments of a game that waits for no other engine."""
    kept = []
    arguments = iter(engine_args)
    for argument in arguments:
        if argument in NETWORK_ARGS:
            next(arguments)
        else:
            kept.append(argument)
    return kept


if __name__ == "__main__":
    main()
