"""What a job asks for, as sbatch is told, and the mistakes that one can make."""

import pytest

from sf.config import Config
from sf.tools.sweep.launchers.launcher import LaunchFlags, make_launcher
from sf.tools.sweep.launchers.slurm_flags import SlurmFlags


def config(num_workers):
    return Config().replace(num_workers=num_workers)


def test_flags_become_parameters_of_sbatch():
    flags = SlurmFlags("main", "lab", 4, 2, 0.5, 1.51, sbatch=("qos=high", "exclusive", "comment=a=b"))
    assert flags.parameters("seed=0", 3) == {
        "job_name": "seed=0",
        "partition": "main",
        "account": "lab",
        "cpus_per_task": 4,
        "srun_args": ["--cpus-per-task=4"],
        "gpus_per_node": 2,
        "mem": "512M",
        "time": 91,
        "additional_parameters": {"requeue": True, "qos": "high", "exclusive": True, "comment": "a=b"},
    }


def test_what_is_not_said_is_left_to_the_cluster_but_for_time_and_cores():
    told = SlurmFlags().parameters("seed=0", 3)
    assert set(told) == {"job_name", "cpus_per_task", "srun_args", "time", "additional_parameters"}
    assert (told["cpus_per_task"], told["time"]) == (3, 240)


def test_a_run_whose_workers_are_not_set_has_as_many_as_its_job_has_cores():
    launcher = make_launcher(LaunchFlags(launcher="slurm", slurm=SlurmFlags(cpus=6)), [config("auto"), config(2)])
    assert launcher.workers == [6, 2]
    assert launcher.places == 8
    assert make_launcher(LaunchFlags(launcher="slurm"), [config(1)] * 20).places == 20
    assert make_launcher(LaunchFlags(launcher="slurm", parallel=3), [config(1)] * 20).places == 3
    with pytest.raises(ValueError, match="say --cpus, or set num_workers"):
        make_launcher(LaunchFlags(launcher="slurm"), [config("auto")])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"cpus": 0}, "cpus is 0"),
        ({"memory_gb": 0.0}, r"memory_gb is 0\.0"),
        ({"hours": float("inf")}, "hours is inf"),
        ({"retries": -1}, "retries is -1"),
        ({"sbatch": ("--qos=high",)}, "it must be key=value"),
        ({"sbatch": ("comment=a\nrm",)}, "it must be key=value"),
        ({"sbatch": ("time=10",)}, "say --hours instead"),
        ({"sbatch": ("signal=USR1",)}, "the launcher sets signal itself"),
    ],
)
def test_a_mistake_is_a_sentence(flags, message):
    with pytest.raises(ValueError, match=message):
        SlurmFlags(**flags)
    with pytest.raises(ValueError, match="partition is for jobs of a cluster"):
        make_launcher(LaunchFlags(slurm=SlurmFlags(partition="main")), [config(1)])
