"""Two ranks under torchrun, through the real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import warm
from untrained import untrained

import sf
from sf.config import Config
from sf.run.trainer import train
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

PATIENCE_S = 300
FLAGS = [
    *("--env", "CartPole-v1", "--num_workers", "1", "--num_envs_per_worker", "8", "--rollout", "16"),
    *("--batch_size", "128", "--num_batches_per_epoch", "2", "--num_epochs", "1", "--compile", "false"),
    *("--device", "cpu", "--experiment", "ranks", "--summaries_every_sec", "0.5"),
    *("--train_for_seconds", "600"),  # also where a test is killed
]


def long(test):
    return pytest.mark.long(pytest.mark.timeout(3 * PATIENCE_S)(test))


def start(tmp_path, *flags):
    return started(tmp_path, "-m", "sf", *FLAGS, "--num_learners", "2", "--train_dir", str(tmp_path), *flags)


def start_by_torchrun(tmp_path, *flags, max_restarts=0):
    words = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(max_restarts), "-m", "sf"]
    return started(tmp_path, "-m", "torch.distributed.run", *words, *FLAGS, "--train_dir", str(tmp_path), *flags)


def started(tmp_path, *words):
    with (tmp_path / "output").open("w") as output:
        command = [sys.executable, *words]
        return warm.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, starts_commands=True
        )


def ended(process, tmp_path, status=0):
    """Waits for the end of the process. Its status is this one."""
    output = tmp_path / "output"
    try:
        found = process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(output.read_text())
    assert found == status, output.read_text()
    return output.read_text()


def descendants(pid):
    """Of a process, by name."""
    found = {}
    with suppress(OSError):  # it has just ended
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found[int(child)] = Path(f"/proc/{child}/comm").read_text().strip()
            found |= descendants(child)
    return found


def wait_for(condition, tmp_path):
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, (tmp_path / "output").read_text()
        time.sleep(0.1)


def ranks_of(process):
    """The parents of the ranks by number: children of the agent."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    variables = {int(pid): Path(f"/proc/{pid}/environ").read_text().split("\0") for pid in children}
    return {rank: pid for pid, of_pid in variables.items() for rank in range(2) if f"RANK={rank}" in of_pid}


def wait_for_learner(process, tmp_path):
    """Of any rank; returns its pid."""
    wait_for(lambda: "learner-0" in descendants(process.pid).values(), tmp_path)
    return next(pid for pid, name in descendants(process.pid).items() if name == "learner-0")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latest_record(tmp_path):
    path = tmp_path / "ranks" / "metrics.jsonl"
    whole, _, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")  # the rest is being written
    return json.loads(whole.splitlines()[-1]) if whole else None


def checkpoints(tmp_path):
    return sorted((tmp_path / "ranks" / "checkpoints").glob("checkpoint_*"))


def test_two_ranks_train_one_policy_in_one_run(tmp_path):
    # What other ranks have said of an earlier run is not in the way of a new one.
    RunDir(other(tmp_path)).prepare(Config().replace(env="CartPole-v1", num_policies=2), "an earlier one")
    output = ended(start(tmp_path, "--train_for_env_steps", "3000"), tmp_path)
    summaries = [json.loads((path / "summary.json").read_text()) for path in (tmp_path / "ranks", other(tmp_path))]
    of_both = 2 * 2 * 128  # samples of an iteration, at most as many env steps
    for summary in summaries:
        assert 3000 <= summary["env_steps"] < 3000 + of_both
        assert summary["env_steps"] <= (summary["train/policy_version"] - 1) // 2 * of_both
        assert summary["restarts"] == 0
    # The first tells of the episodes of both, which are different ones.
    assert summaries[0]["episodes"] > summaries[1]["episodes"] > 0
    records = [json.loads(line) for line in (tmp_path / "ranks" / "metrics.jsonl").read_text().splitlines()]
    assert {record.get("ranks/slowest") for record in records} & {0, 1}
    assert len(checkpoints(tmp_path)) == 1
    assert not list((other(tmp_path) / "checkpoints").iterdir())
    assert output.count("resume: ") == 1


def other(tmp_path):
    return tmp_path / ".ranks" / "ranks" / "01"


@long
def test_where_one_rank_is_asked_to_end_the_learners_of_all_policies_end_on_all(tmp_path):
    flags = ["--num_policies", "2", "--max_policy_lag", "100000", "--stop_at_return", "12", "--stats_avg", "4"]
    output = ended(start(tmp_path, *flags), tmp_path)
    assert output.count(": saved ") == 2
    assert "again" not in output  # nor has the watchdog ended a learner that waited


@long
def test_the_death_of_a_learner_ends_all_ranks_and_torchrun_starts_them_again(tmp_path):
    # Training takes several times the second after which the death has come.
    process = start_by_torchrun(tmp_path, "--train_for_env_steps", "40000", "--save_every_sec", "1", max_restarts=1)
    wait_for(lambda: checkpoints(tmp_path), tmp_path)
    learners = [pid for pid, name in descendants(process.pid).items() if name == "learner-0"]
    assert len(learners) == 2
    os.kill(learners[-1], signal.SIGKILL)
    output = ended(process, tmp_path)
    assert not any(Path(f"/proc/{pid}").exists() for pid in learners)
    summary = json.loads((tmp_path / "ranks" / "summary.json").read_text())
    assert summary["env_steps"] >= 40000
    assert "has ended, and with it all ranks" in output


@long
def test_a_stopped_run_of_ranks_saves_and_is_resumed_by_one(tmp_path):
    process = start(tmp_path, "--save_every_sec", "1")
    wait_for(lambda: checkpoints(tmp_path), tmp_path)
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    ended(process, tmp_path, 130)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), tmp_path)
    saved = int(checkpoints(tmp_path)[-1].stem.rpartition("_")[2])
    words = [*FLAGS, "--num_learners", "1", "--train_dir", str(tmp_path), "--train_for_env_steps", str(saved + 1)]
    assert train(cli.parse(words))["env_steps"] > saved


@long
def test_where_the_first_rank_is_gone_another_one_saves_what_it_remembers(tmp_path):
    process = start(tmp_path, "--save_every_sec", "1000", "--keep_checkpoints", "9")
    wait_for(lambda: (latest_record(tmp_path) or {"env_steps": 0})["env_steps"] > 0, tmp_path)
    began_at = latest_record(tmp_path)["seconds"]
    wait_for(lambda: latest_record(tmp_path)["seconds"] > began_at + 7, tmp_path)  # it remembers its state every 5 s
    reached = latest_record(tmp_path)["env_steps"]
    os.kill(ranks_of(process)[0], signal.SIGKILL)
    wait_for(lambda: checkpoints(tmp_path), tmp_path)
    at_death = int(checkpoints(tmp_path)[-1].stem.rpartition("_")[2])
    wait_for(lambda: latest_record(tmp_path)["env_steps"] > max(reached, at_death), tmp_path)
    process.send_signal(signal.SIGINT)
    ended(process, tmp_path, 130)
    _, at_end = (int(path.stem.rpartition("_")[2]) for path in checkpoints(tmp_path))
    assert reached / 4 < at_death < at_end


@long
def test_a_new_run_whose_first_start_fails_is_no_resumed_earlier_one(tmp_path):
    run_dir = RunDir(tmp_path / "ranks")
    run_dir.prepare(cli.parse([*FLAGS, "--train_dir", str(tmp_path)]))
    checkpoint.save(run_dir.checkpoints, untrained("CartPole-v1"), 2000, keep=2)
    (earlier,) = checkpoints(tmp_path)
    content = earlier.read_bytes()
    process = start(tmp_path, "--train_for_env_steps", "2000", "--restart_behavior", "restart")
    aside = tmp_path / "ranks.old1"
    wait_for(aside.exists, tmp_path)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    output = ended(process, tmp_path)
    assert "the new run did not start: the earlier one is still in" in output
    assert "the run saves and ends" not in output
    assert (aside / "checkpoints" / earlier.name).read_bytes() == content


@long
def test_a_failure_that_would_come_again_starts_no_rank_again_whichever_ends_first(tmp_path):
    diverges = ("--learning_rate", "1e30", "--lr_schedule", "constant", "--max_skipped_updates", "2")
    evaluates = ("--eval_every_env_steps", "100000")  # at the first rank, which ends later for it
    process = start(tmp_path, *diverges, "--on_divergence", "stop", "--max_restarts", "3", *evaluates)
    assert "all ranks are started again" not in ended(process, tmp_path, 1)


@long
def test_a_stop_within_a_long_iteration_loses_nothing_that_was_trained_on(tmp_path):
    process = start(tmp_path, "--num_epochs", "5000", "--max_policy_lag", "100000")
    log = tmp_path / "ranks" / "run.log"
    learner = wait_for_learner(process, tmp_path)
    wait_for(lambda: cpu_seconds(learner) > 4, tmp_path)
    process.send_signal(signal.SIGINT)
    ended(process, tmp_path, 130)
    assert "did not stop when asked to" not in log.read_text()
    assert len(checkpoints(tmp_path)) == 1


@long
@pytest.mark.parametrize("have_begun", [False, True])
def test_a_killed_launcher_takes_all_ranks_with_it(tmp_path, have_begun):
    process = start(tmp_path)
    if have_begun:
        wait_for_learner(process, tmp_path)
    else:
        wait_for(lambda: len(ranks_of(process)) == 2, tmp_path)
    children = descendants(process.pid)
    process.kill()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), tmp_path)
    assert have_begun or not (tmp_path / "output").read_text()  # none has waited for the others until it gave up


@long
def test_synchronous_ranks_come_to_the_same_weights_to_the_bit_each_time(tmp_path):
    weights, processes = [], []
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        processes.append(start(tmp_path / name, "--async_rl", "false", "--train_for_env_steps", "2000"))
    for name, process in zip(("once", "again"), processes, strict=True):
        ended(process, tmp_path / name)
        weights.append(checkpoint.fingerprint(checkpoint.load(checkpoints(tmp_path / name)[-1])))
    assert weights[0] == weights[1]


@long
def test_each_of_several_policies_trains_on_all_ranks_and_the_population_evolves(tmp_path):
    evolves = ("--with_pbt", "true", "--pbt_period_env_steps", "2000", "--pbt_start_mutation", "2000")
    flags = ("--num_policies", "2", "--lr_schedule", "constant", "--stats_avg", "4", *evolves)
    ended(start(tmp_path, *flags, "--train_for_env_steps", "8000"), tmp_path)
    assert len((tmp_path / "ranks" / "population.jsonl").read_text().splitlines()) > 2  # more than both beginnings
    for policy_id in range(2):
        assert list((tmp_path / "ranks" / "checkpoints" / f"policy_{policy_id:02d}").glob("checkpoint_*"))
    assert not (other(tmp_path) / "population.jsonl").exists()


def test_a_run_in_this_process_has_one_learner(tmp_path):
    with pytest.raises(ValueError, match="num_learners is 2: a call from Python trains with one"):
        sf.train(env="CartPole-v1", num_learners=2, train_dir=str(tmp_path))
