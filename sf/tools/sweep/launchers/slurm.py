"""`--launcher slurm`: each run is a job of a SLURM cluster, by submitit.

Jobs go on without the command. It remembers them in `slurm/jobs.json` in the directory of the sweep, and watches those
of an earlier start instead of submitting them again. A job that SLURM queues again keeps its id; for one that the
cluster has lost, a new one goes on from the checkpoint of the run.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from multiprocessing import connection
from pathlib import Path

from sf.config import Config
from sf.envs.errors import UsageError
from sf.system.machine import extras
from sf.system.processes.stopping import STOP_SIGNALS, Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers import slurm_jobs
from sf.tools.sweep.launchers.slurm_flags import SlurmFlags
from sf.tools.sweep.launchers.slurm_jobs import Job, read_jobs, write_jobs
from sf.tools.sweep.launchers.training_job import ASKED_TO_END, TrainingJob, read_end
from sf.tools.sweep.sweep_dir import last_line, log_of

_PROGRAMS = ("sbatch", "srun", "squeue", "scancel")
_AT_ONCE = 8  # runs of a search, where it is not said
_LOOK_EVERY_S = 5.0  # at files, which many share
_ASK_EVERY_S = 20.0  # SLURM, which many ask
_SEEN_WITHIN_S = 60.0  # a file on another machine of the cluster
_NO_WORD = 1  # status of a run that has left none


class SlurmLauncher:
    """flags: what a job asks for. configs: of the runs, or of one that stands for all. parallel: runs at once. None:
    those of all configs, and at least 8.
    """

    def __init__(self, flags: SlurmFlags, configs: Sequence[Config], parallel: int | None) -> None:
        self.places = parallel or max(_AT_ONCE, len(configs))
        self.workers = [flags.workers(config) for config in configs]
        self._flags = flags
        self._jobs: dict[str, tuple[SweepRun, Job]] = {}  # under way, by the name of the run
        self._ended_at: dict[str, float] = {}  # when SLURM said so of a job whose end nothing tells yet, by its id
        self._reasons: dict[str, str] = {}  # of failures that are not the run's own, by its name
        self._asked_at = -float("inf")
        self._refused_at = -float("inf")  # when sbatch last took no job

    def require(self) -> None:
        extras.require("slurm", "submitit", purpose="--launcher slurm")
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            raise UsageError(
                f"--launcher slurm needs {' and '.join(missing)} on the PATH: start this on a login node of a SLURM "
                "cluster, or leave out --launcher to run everything here"
            )

    def open(self, directory: Path, places: int, say: Callable[[str], None]) -> None:
        self.places = places
        self._directory = directory
        self._folder = directory / "slurm"
        self._say = say
        self._complain = cache(say)  # each sentence once
        jobs = read_jobs(self._folder / "jobs.json")
        self._ask(jobs.values())
        self._before = {name: job for name, job in jobs.items() if not _is_over(job)}

    @property
    def has_place(self) -> bool:
        return len(self._jobs) < self.places and (not self._jobs or self._may_submit())

    @property
    def is_empty(self) -> bool:
        return not self._jobs

    def log(self, run: SweepRun) -> Path:
        """Returns the folder of the jobs if the run itself has said nothing."""
        log = log_of(self._directory, run.name)
        return log if log.exists() or run.name not in self._reasons else self._folder

    def last_words(self, run: SweepRun) -> str:
        return self._reasons.get(run.name) or last_line(self.log(run)) or "no output"

    def is_queued(self, run: SweepRun) -> bool:
        found = self._jobs.get(run.name)
        return found is not None and found[1].state in slurm_jobs.QUEUED

    def start(self, run: SweepRun) -> str:
        """Raises OSError where sbatch takes no job while others are under way, and UsageError where none is."""
        before = self._before.pop(run.name, None)
        if before is not None:
            self._jobs[run.name] = run, before
            return f"job {before.job_id} goes on:"
        try:
            job = self._submit(run, num_lost=0)
        except UsageError as error:
            if not self._jobs:
                raise
            self._refused_at = time.monotonic()
            raise OSError(str(error)) from None
        return f"submitted job {job.job_id}:"

    def wait(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        connection.wait([signals.wakeup], _LOOK_EVERY_S)
        signals.clear_wakeup()
        if time.monotonic() - self._asked_at > _ASK_EVERY_S:
            self._ask(job for _, job in self._jobs.values())
        for run, job in list(self._jobs.values()):
            status = self._status(run, job)
            if status is not None:
                del self._jobs[run.name]
                self._remember()
                yield run, status

    def interrupt(self, run: SweepRun) -> None:
        if run.name in self._jobs:
            cancel = ["scancel", self._jobs[run.name][1].job_id]
            subprocess.run(cancel, capture_output=True, check=False)  # where it fails, the run goes on to its end

    def stop(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """Ends no run with the command: a place in the queue is not soon to be had again."""
        if self._jobs:
            ids = " ".join(job.job_id for _, job in self._jobs.values())
            self._say(f"jobs that go on without this command: {ids}; scancel ends them, after they saved")
        yield from ()

    def _ask(self, jobs: Iterable[Job]) -> None:
        """SLURM, for their states, which stay what they were where it does not answer."""
        jobs = list(jobs)
        self._asked_at = time.monotonic()
        try:
            found = slurm_jobs.states([job.job_id for job in jobs])
        except OSError as error:
            self._complain(f"SLURM does not say how its jobs are ({error}): asking again")
            return
        for job in jobs:
            job.state = found[job.job_id]

    def _status(self, run: SweepRun, job: Job) -> int | None:
        """Returns the status of a run that has ended; None if it goes on, if need be as another job."""
        end = read_end(job.folder)
        if end is not None and end.is_final:
            if end.sentence is not None:
                self._reasons[run.name] = f"job {job.job_id} has ended: {end.sentence}"
            return end.status
        if job.state not in slurm_jobs.OVER:
            return None
        if job.state == slurm_jobs.CANCELLED:
            return ASKED_TO_END[1]
        if end is not None or job.state in slurm_jobs.LOST:
            return self._replace(run, job)
        ended_at = self._ended_at.setdefault(job.job_id, time.monotonic())
        return self._without_a_word(run, job) if time.monotonic() - ended_at > _SEEN_WITHIN_S else None

    def _without_a_word(self, run: SweepRun, job: Job) -> int:
        said = last_line(job.folder / f"{job.job_id}_0_log.err")
        self._reasons[run.name] = f"job {job.job_id} has ended as {job.state}" + (f": {said}" if said else "")
        return _NO_WORD

    def _replace(self, run: SweepRun, job: Job) -> int | None:
        if job.num_lost >= self._flags.retries:
            self._reasons[run.name] = (
                f"job {job.job_id} has ended as {job.state}, the last of {job.num_lost + 1} that did"
            )
            return _NO_WORD
        if not self._may_submit():
            return None
        try:
            successor = self._submit(run, job.num_lost + 1)
        except (OSError, UsageError) as error:
            self._refused_at = time.monotonic()
            self._complain(f"job {job.job_id} of {run.name} has ended as {job.state}, and no other yet ({error})")
            return None
        self._say(
            f"job {job.job_id} of {run.name} has ended as {job.state}: job {successor.job_id} goes on with it "
            f"({successor.num_lost} of {self._flags.retries})"
        )
        return None

    def _may_submit(self) -> bool:
        """Returns whether it is long enough since sbatch took no job."""
        return time.monotonic() - self._refused_at > _ASK_EVERY_S

    def _submit(self, run: SweepRun, num_lost: int) -> Job:
        """Raises UsageError, with sbatch's words, where it does not take the job."""
        import submitit  # noqa: PLC0415  an extra
        from submitit.core.utils import FailedJobError, FailedSubmissionError  # noqa: PLC0415

        self._folder.mkdir(exist_ok=True)
        # New, so that nobody has laid a pickle there, and the user's alone.
        folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._folder)).absolute()
        command = run.command(self._directory)
        training = TrainingJob(command, log_of(self._directory, run.name).absolute(), folder, self._flags.retries)
        # TrainingJob counts itself how often it was queued again, whatever for.
        executor = submitit.SlurmExecutor(folder, max_num_timeout=sys.maxsize)
        executor.update_parameters(**self._flags.parameters(run.name, run.flags["num_workers"]))
        # Ctrl-C shall not reach sbatch between the job and its number.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            with redirect_stderr(StringIO()):  # submitit prints what it raises
                submitted = executor.submit(training)
            job = Job(submitted.job_id, folder, num_lost)
            self._jobs[run.name] = run, job
            self._remember()
        except (FailedJobError, FailedSubmissionError) as error:
            shutil.rmtree(folder)
            raise UsageError(f"sbatch does not take the job of {run.name}: {_words_of_sbatch(str(error))}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return job

    def _remember(self) -> None:
        under_way = {name: job for name, (_, job) in self._jobs.items()}
        try:
            write_jobs(self._folder / "jobs.json", {**self._before, **under_way})
        except OSError as error:  # the jobs go on, and the next attempt may succeed
            self._say(
                f"{self._folder / 'jobs.json'} cannot be written ({error}): another start would not know its jobs"
            )


def _words_of_sbatch(said: str) -> str:
    lines = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in said.splitlines() if line.strip()]
    return "; ".join(lines) or "it says nothing"


def _is_over(job: Job) -> bool:
    end = read_end(job.folder)
    return job.state in slurm_jobs.OVER or (end is not None and end.is_final)
