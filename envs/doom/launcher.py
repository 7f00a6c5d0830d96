"""Becomes the ViZDoom engine, after making sure that neither it nor its shared memory can outlive its owner.

ViZDoom forks and executes its engine, and forgets about it when its own process is killed: the engine runs
on, and its files, /dev/shm/ViZDoom*, stay. So `envs.doom.engine` has ViZDoom execute this script in the
engine's place, with a bare interpreter (standard library only, `-I -S`), as

    launcher.py OWNER_PID READ_FD WRITE_FD ENGINE_PATH [the arguments that ViZDoom gives its engine]

- The kernel kills the engine when the thread that forked it ends; that is ViZDoom's own thread, which waits
  for the engine and so lives as long as its process.
- A sweeper, a process that lives for the time of the start-up, removes the names of the files as soon as
  nobody needs them: either both sides have mapped them (the owner writes a byte into the pipe READ_FD,
  WRITE_FD), or owner and engine, who hold the writing end, are both dead (end of file). What it cannot cover
  is a kill of the whole process group in the 30 ms before this script runs: two files of 10 KiB stay.
- The engine gets a session of its own: Ctrl-C in a terminal is for the owner, which then closes the engine.
"""

import contextlib
import ctypes
import glob
import os
import shutil
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    owner_pid, read_fd, write_fd = (int(argument) for argument in sys.argv[1:4])
    engine_path, *engine_args = sys.argv[4:]
    instance_id = engine_args[engine_args.index("+viz_instance_id") + 1]
    os.setsid()
    # The engine insists on making a folder _vizdoom where it starts: not in the user's working directory.
    start_folder = f"/dev/shm/ViZDoomFolder{instance_id}"
    os.mkdir(start_folder, mode=0o700)
    start_sweeper(read_fd, write_fd, instance_id, start_folder)
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != owner_pid:  # it died before the kernel was told to watch it
        sys.exit(1)
    os.close(read_fd)
    os.chdir(start_folder)
    os.execv(engine_path, [engine_path, *engine_args])


def start_sweeper(read_fd: int, write_fd: int, instance_id: str, start_folder: str) -> None:
    """Forked twice, so that init reaps it: the engine would not."""
    child_pid = os.fork()
    if child_pid > 0:
        os.waitpid(child_pid, 0)
        return
    if os.fork() > 0:
        os._exit(0)
    os.close(write_fd)
    os.read(read_fd, 1)
    shutil.rmtree(start_folder, ignore_errors=True)
    for path in glob.glob(f"/dev/shm/ViZDoom*{instance_id}"):
        with contextlib.suppress(FileNotFoundError):  # ViZDoom removes them too, where it is closed in order
            os.unlink(path)
    os._exit(0)


if __name__ == "__main__":
    main()
