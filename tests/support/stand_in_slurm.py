"""A stand-in for SLURM: its commands, and jobs that are processes of this machine.

`Cluster` puts the commands on the PATH and plays what clusters do to jobs. Each job has a folder with its script, its
state, and what has been decided over it. As a program it is one of the commands, or the node that starts what srun is
given, which is warm.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import connection
from pathlib import Path

COMMANDS = ("sbatch", "srun", "squeue", "sacct", "scancel", "scontrol")
PARTITIONS = ("main", "long")
FIRST_ID = 101


class Cluster:
    """folder: of the stand-in. monkeypatch: puts it on the PATH."""

    def __init__(self, folder, monkeypatch):
        import warm  # noqa: PLC0415  the commands have no packages

        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name in COMMANDS:
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" {name} "$@"\n')
            (programs / name).chmod(0o755)
        monkeypatch.setenv("STAND_IN_SLURM", str(folder))
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        self._node = warm.Popen([sys.executable, __file__, "node"], starts_commands=True, stdout=subprocess.PIPE)
        assert self._node.stdout.readline() == b"listens\n"

    @property
    def ids(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name.isdigit())

    def state(self, job_id):
        return (self.folder / job_id / "state").read_text()

    def script(self, job_id):
        return (self.folder / job_id / "script").read_text()

    def lose(self, job_id, state):
        """As where a node dies, or the time is over."""
        decide(self.folder / job_id, state)
        signal_job(self.folder / job_id, signal.SIGKILL)
        set_state(self.folder / job_id, state)

    def signal(self, job_id, signum):
        """All processes of a job, as SLURM does."""
        signal_job(self.folder / job_id, signum)

    def forget(self, job_id):
        """squeue knows a job for some minutes after its end."""
        (self.folder / job_id / "forgotten").touch()

    def hold(self):
        """Jobs wait until `release`."""
        os.mkfifo(self.folder / "held")

    def release(self):
        with (self.folder / "held").open("w"):
            (self.folder / "held").unlink()

    def break_squeue(self, sentence):
        """None: it works again."""
        broken = self.folder / "broken"
        broken.unlink(missing_ok=True) if sentence is None else broken.write_text(sentence)

    def break_sbatch(self, sentence):
        """None: it works again."""
        full = self.folder / "full"
        full.unlink(missing_ok=True) if sentence is None else full.write_text(sentence)

    def end(self):
        """Nothing is left."""
        if (self.folder / "held").exists():
            fd = os.open(self.folder / "held", os.O_RDWR)  # which waits for nobody
            (self.folder / "held").unlink()
            os.close(fd)
        for job_id in self.ids:
            self.lose(job_id, "CANCELLED")
        self._node.kill()
        self._node.communicate()


def decide(folder, state):
    (folder / "verdict").write_text(state)


def signal_job(folder, signum):
    """SIGKILL is for the script, too, all others for what srun has started alone."""
    for name in ("script_pid", "step_pid") if signum == signal.SIGKILL else ("step_pid",):
        with contextlib.suppress(OSError, ValueError):  # it has not begun, or has ended
            os.killpg(int((folder / name).read_text()), signum)


def set_state(folder, state):
    beside = folder / f"state.{os.getpid()}"
    beside.write_text(state)
    beside.replace(folder / "state")


def sbatch(root, words):
    script = Path(words[0]).read_text()
    for line in script.splitlines():
        if line.startswith("#SBATCH --partition=") and line.partition("=")[2] not in PARTITIONS:
            fail(
                f"sbatch: error: invalid partition specified: {line.partition('=')[2]}\n"
                "sbatch: error: Batch job submission failed: Invalid partition name specified"
            )
    if (root / "full").exists():
        fail((root / "full").read_text())
    job_id = FIRST_ID
    while (root / str(job_id)).exists():
        job_id += 1
    folder = root / str(job_id)
    folder.mkdir()
    (folder / "script").write_text(script)
    set_state(folder, "PENDING")
    with (folder / "out").open("ab") as out:  # of what goes wrong here
        words = [sys.executable, "-S", __file__, "live", str(job_id)]
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    print(f"Submitted batch job {job_id}")


def live(root, words):
    """The life of a job, in a process that survives sbatch."""
    folder = root / words[0]
    environment = {**os.environ, "SLURM_JOB_ID": words[0], "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    while True:
        if (root / "held").exists():
            (root / "held").read_bytes()  # until it is closed
        if (folder / "verdict").exists():
            break
        job = subprocess.Popen(["/bin/bash", str(folder / "script")], env=environment, start_new_session=True)
        (folder / "script_pid").write_text(str(job.pid))
        set_state(folder, "RUNNING")
        status = job.wait()
        signal_job(folder, signal.SIGKILL)  # what the script has left
        if not (folder / "requeue").exists():
            break
        (folder / "requeue").unlink()
        set_state(folder, "PENDING")
    verdict = folder / "verdict"
    set_state(folder, verdict.read_text() if verdict.exists() else "FAILED" if status else "COMPLETED")


def srun(root, words):
    streams = {}
    while words[0].startswith("--"):
        word = words.pop(0)
        if word in ("--output", "--error"):
            streams[word] = words.pop(0).replace("%j", os.environ["SLURM_JOB_ID"]).replace("%t", "0")
    with connection.Client(str(root / "node")) as to_node:
        to_node.send((words, dict(os.environ), os.getcwd(), streams["--output"], streams["--error"]))
        status = to_node.recv()
    raise SystemExit(status if status >= 0 else 128 - status)


def node(root, words):
    starting = threading.Lock()
    with connection.Listener(str(root / "node")) as listener:
        print("listens", flush=True)
        while True:
            threading.Thread(target=run_step, args=(root, listener.accept(), starting), daemon=True).start()


def run_step(root, of_srun, starting):
    words, environ, folder, output, error = of_srun.recv()
    words.remove("-u")  # with a flag an interpreter starts cold
    warm = {"starts_commands": True} if subprocess.Popen.__module__ != "subprocess" else {}  # this may have begun cold
    with starting, open(output, "ab") as out, open(error, "ab") as err:
        step = subprocess.Popen(words, stdout=out, stderr=err, cwd=folder, env=environ, start_new_session=True, **warm)
        (root / environ["SLURM_JOB_ID"] / "step_pid").write_text(str(step.pid))
    with contextlib.suppress(OSError):  # srun has been killed
        of_srun.send(step.wait())


def squeue(root, words):
    if (root / "broken").exists():
        fail((root / "broken").read_text())
    [ids] = [word.partition("=")[2].split(",") for word in words if word.startswith("--jobs=")]
    known = [
        job_id for job_id in ids if (root / job_id / "state").exists() and not (root / job_id / "forgotten").exists()
    ]
    if not known:
        fail("slurm_load_jobs error: Invalid job id specified")
    for job_id in known:
        print(job_id, (root / job_id / "state").read_text())


def sacct(root, words):
    [job_id] = [word.partition("=")[2] for word in words if word.startswith("--jobs=")]
    state = (root / job_id / "state").read_text()
    print(f"{state} by {os.getuid()}" if state == "CANCELLED" else state)


def scancel(root, words):
    for job_id in words:
        decide(root / job_id, "CANCELLED")
        set_state(root / job_id, "CANCELLED")
        signal_job(root / job_id, signal.SIGTERM)


def scontrol(root, words):
    what, job_id = words
    assert what == "requeue"
    (root / job_id / "requeue").touch()  # whoever asks is the job itself, and ends


def fail(sentence):
    print(sentence, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a job inherits nothing of the process that submits it
    name, *arguments = sys.argv[1:]
    {"live": live, "node": node, **{command: globals()[command] for command in COMMANDS}}[name](
        Path(os.environ["STAND_IN_SLURM"]), arguments
    )
