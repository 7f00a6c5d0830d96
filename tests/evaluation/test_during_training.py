"""What a run asks of its evaluator: when, what becomes of the results and videos, and which checkpoint is the best."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import runs
from faults import processes
from recorded_reports import RecordedReports
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from untrained import untrained

from sf.evaluation import evaluator
from sf.evaluation.during_training import Evaluations, EvaluatorOrders, Videos
from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.evaluation.play.policy import load_policy
from sf.run.parent_saves import BestCheckpoints
from sf.run.reports import ReportHandler
from sf.shared.recovery import RecoveryMemory
from sf.storage import best_checkpoint, video_files
from sf.storage.run_dir import temporary_beside
from sf.system.processes.reports import Evaluated, Exploited, Filmed, GivenUp


class Progress:
    """As much of `sf.metrics.progress.Progress` as is asked for here."""

    has_begun = True
    seconds = 1.0
    objective = "true_objective"

    def __init__(self, env_steps=0, scores=()):
        self.env_steps = env_steps
        self.metrics = {}
        self.policies = [SimpleNamespace(objective=lambda name, i=i: self.scores[i]) for i in range(len(scores))]
        self.scores = list(scores)

    def add_to_record(self, metrics):
        self.metrics.update(metrics)


_NAMES = {EVALUATE: "evaluate", FILM: "film", EXPLOIT: "exploit"}


def statistics(mean):
    return {"num": 3, "mean": mean, "low": mean - 1, "high": mean + 1, "median": mean, "std": 0.0, "min": 0, "max": 9}


def report(*means):
    policies = [
        {"env_steps": 90, "statistics": {"return": statistics(m), "num_steps": statistics(5), "frags": statistics(2)}}
        for m in means
    ]
    return Evaluated(policies, env_faults=0)


def make(progress, resumed_env_steps=0, evaluate=100, film=None, exploit=None):
    """The orders, and those that were given."""
    ordered = []
    every = {EVALUATE: evaluate, FILM: film, EXPLOIT: exploit}
    queue = SimpleNamespace(put=ordered.append)
    return EvaluatorOrders(every, resumed_env_steps, queue, progress), ordered


def make_evaluations(progress):
    orders, _ = make(progress)
    records = []
    writer = SimpleNamespace(write_evaluation=records.append)
    return Evaluations(orders, progress, writer), records


def test_an_evaluation_is_due_at_every_multiple_and_never_two_at_once():
    progress = Progress()
    orders, ordered = make(progress)
    num_ordered = []
    for env_steps in range(0, 1000, 30):
        progress.env_steps = env_steps
        orders.give_if_due()
        num_ordered.append(len(ordered))
        if env_steps == 510:
            orders.done()
    assert max(num_ordered[:4]) == 0  # up to 90
    assert num_ordered[4] == 1  # at 120
    assert num_ordered[17] == 1  # nobody has answered
    assert num_ordered[18] == 2  # at 540; those at 200, 300 and 400 are not made up for
    assert num_ordered[-1] == 2


def test_all_three_orders_take_turns_where_all_are_always_due():
    progress = Progress()
    orders, ordered = make(progress, evaluate=10, film=10, exploit=10)
    for env_steps in range(100, 700, 100):
        progress.env_steps = env_steps
        orders.give_if_due()
        orders.done()
    assert ordered == [EVALUATE, FILM, EXPLOIT, EVALUATE, FILM, EXPLOIT]


@pytest.mark.parametrize(("order", "command"), [(EXPLOIT, "sf-eval --exploitability"), (FILM, "sf-enjoy --video")])
def test_a_run_without_evaluations_keeps_the_best_by_its_training_and_names_what_its_end_drops(order, command, said):
    for never in (None, 0):
        orders, ordered = make(Progress(env_steps=150), evaluate=never, **{_NAMES[order]: 100})
        orders.give_if_due()
        assert ordered == [order]
        assert not orders.has_evaluations
        orders.end()
        assert command in said.pop()


@pytest.mark.parametrize("order", [EVALUATE, FILM])
def test_a_resumed_run_waits_for_the_next_multiple(order):
    progress = Progress(env_steps=250)
    orders, ordered = make(progress, 240, **{"evaluate": None, _NAMES[order]: 100})
    orders.give_if_due()
    assert len(ordered) == 0
    progress.env_steps = 300
    orders.give_if_due()
    assert ordered == [order]


def test_when_the_evaluator_is_given_up_training_decides_over_the_best_checkpoints(said):
    progress = Progress(env_steps=150)
    orders, ordered = make(progress)
    orders.give_if_due()
    assert orders.has_evaluations
    events = ReportHandler(progress, 1, orders, None, SimpleNamespace(remove_unfinished=lambda: None))
    events.handle(SimpleNamespace(name="evaluator-0", role="evaluator"), GivenUp("it has died"))
    assert not orders.has_evaluations
    progress.env_steps = 1000
    orders.give_if_due()
    orders.end()
    assert len(ordered) == 1
    assert len(said) == 1


def test_results_are_written_said_and_become_metrics(said):
    progress = Progress()
    evaluations, records = make_evaluations(progress)
    evaluations.evaluated(report(4.0))
    assert progress.metrics == {
        "eval/env_steps": 90,
        "eval/mean_return": 4.0,
        "eval/mean_return_low": 3.0,
        "eval/mean_return_high": 5.0,
        "eval/median_return": 4.0,
        "eval/mean_episode_steps": 5,
        "eval/stats/frags": 2,
    }
    assert records[0]["statistics"]["frags"]["mean"] == 2
    assert "4.00 (3.00 to 5.00)" in said[0]
    evaluations.evaluated(report(4.0, 6.0))
    assert progress.metrics["policy_01/eval/mean_return"] == 6.0
    assert [record["policy_id"] for record in records] == [0, 0, 1]


@pytest.mark.parametrize(("num", "prefix"), [(1, ""), (2, "policy_01/")])
def test_exploitability_is_a_line_a_metric_and_a_sentence_for_each_policy(num, prefix, said):
    progress = Progress()
    evaluations, records = make_evaluations(progress)
    for _ in range(2):  # of the same weights
        evaluations.exploited(Exploited([{"env_steps": 90 + i, "exploitability": 0.25 + i} for i in range(num)]))
    last = num - 1
    assert len(records) == len(said) == num
    assert progress.metrics[f"{prefix}eval/exploitability"] == 0.25 + last
    assert progress.metrics[f"{prefix}eval/env_steps"] == 90 + last
    assert len(progress.metrics) == 2 * num
    line = {"policy_id": last, "seconds": 1.0, "env_steps": 90 + last, "exploitability": 0.25 + last}
    assert records[last] == line


class Memory:
    """As much of `sf.run.memory.RunMemory` as is asked for here."""

    def __init__(self, path):
        evaluation = SimpleNamespace(save_best_every_sec=1000.0)
        config, spec = SimpleNamespace(evaluation=evaluation), SimpleNamespace(tasks={})
        self.plan = SimpleNamespace(num_policies=1, config=config, spec=spec)
        self.recoveries = [RecoveryMemory(1 << 20)]
        self._path = path

    def checkpoints_of(self, policy_id):
        return self._path


def test_the_best_checkpoint_is_renewed_when_the_objective_is_higher_and_time_has_passed(tmp_path):
    memory, progress = Memory(tmp_path), Progress(scores=[None])
    best = BestCheckpoints(memory, progress)

    def at(env_steps, score, now=False):
        memory.recoveries[0].write(untrained("toy_bandit", env_steps=env_steps))
        progress.scores[0] = score
        best.keep_if_due(now)
        return best_checkpoint.load_best(tmp_path)[1].state["env_steps"] if any(tmp_path.iterdir()) else None

    assert at(100, None) is None  # too few episodes
    assert at(200, -3.0) == 200
    assert at(300, -1.0) == 200  # too soon after the last
    assert at(400, -4.0, now=True) == 200
    assert at(500, -2.0, now=True) == 500
    assert BestCheckpoints(memory, progress)._best == {(0, None): -2.0}  # a resumed run knows


def test_a_score_of_the_evaluator_that_a_full_disk_kept_from_being_saved_is_not_the_best(tmp_path, monkeypatch, said):
    (tmp_path / "checkpoints").write_text("")
    scores = iter([5.0, 4.0, 4.5])
    evaluation = SimpleNamespace(score_of=lambda _: next(scores), statistics=lambda _: {}, num_env_faults=0)
    monkeypatch.setattr(evaluator, "_play", lambda *_: evaluation)
    args, reports, best = SimpleNamespace(checkpoints=[tmp_path / "checkpoints"]), RecordedReports(), {(0, None): 1.0}

    def evaluate(env_steps):
        evaluator._evaluate(reports, args, [untrained("toy_bandit", env_steps=env_steps)], [None], best)

    evaluate(100)
    assert "could not be saved" in said[0]
    (tmp_path / "checkpoints").unlink()
    evaluate(200)
    assert best_checkpoint.best_score(tmp_path / "checkpoints") == 4.0
    evaluate(300)
    assert best_checkpoint.load_best(tmp_path / "checkpoints")[1].state["env_steps"] == 300
    assert reports.kinds == ["Evaluated", "BestSaved", "Evaluated", "BestSaved", "Evaluated"]
    assert best == {(0, None): 4.5}


EVALUATED = ["--num_policies", "2", "--eval_every_env_steps", "500", "--eval_episodes", "6"]
EVALUATED += ["--video_every_env_steps", "500"]


class Watched:
    """A run of two policies and what it says. Its evaluator plays while its learners stand still: else, on a machine
    that tests share, nobody knows when one of the lowest priority gets its turn."""

    def __init__(self, path):
        self._process = runs.start(path, *EVALUATED, env="toy_match_rps")
        self.said = []

    def read_until(self, is_enough):
        for line in self._process.stdout:
            self.said.append(line)
            if is_enough(line):
                return
        raise AssertionError("".join(self.said))

    def train_until_evaluated(self):
        num_said = len(self.said)
        awaited = ("evaluation of policy 1", "video of policy 1")
        while not all(any(line.startswith(what) for line in self.said[num_said:]) for what in awaited):
            self._signal("learner", signal.SIGCONT)
            self.read_records(3)
            self._signal("learner", signal.SIGSTOP)
            self.read_records(9)

    def read_records(self, num):
        for _ in range(num):
            self.read_until(lambda line: " frames " in line)

    def kill_the_evaluator(self):
        self._signal("evaluator", signal.SIGKILL)
        self.read_until(lambda line: line.startswith("evaluator-0 died of SIGKILL"))

    def end(self):
        self._signal("learner", signal.SIGCONT)
        self._process.send_signal(signal.SIGTERM)
        self.said += self._process.stdout.readlines()
        return self._process.wait(60)

    def _signal(self, role, signum):
        for child in processes.below(self._process.pid):
            if child.name.startswith(f"{role}-"):
                os.kill(child.pid, signum)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that evaluates, loses its evaluator, evaluates again, and ends by SIGTERM."""
    path = tmp_path_factory.mktemp("train_dir")
    run = Watched(path)
    run.train_until_evaluated()
    run.kill_the_evaluator()
    run.train_until_evaluated()
    assert run.end() == 128 + signal.SIGTERM, "".join(run.said)
    return path / "toy_match_rps", "".join(run.said)


def test_a_dead_evaluator_is_replaced_alone_and_every_policy_of_a_run_is_evaluated(killed):
    run, output = killed
    assert re.search(r"evaluator-0 died of SIGKILL\. Replaced$", output, re.MULTILINE)
    records = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert {record["policy_id"] for record in records} == {0, 1}
    assert all(record["statistics"]["return"]["num"] == 6 for record in records)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evaluated = [record for record in metrics if "policy_01/eval/mean_return" in record]
    assert 1 <= len(evaluated) <= len(records) // 2


def test_every_policy_of_a_run_is_filmed_and_no_half_written_file_is_left(killed):
    run, output = killed
    for policy_id in range(2):
        said = re.findall(rf"^video of policy {policy_id} at [\d,]+ env steps: (\S+\.mp4)", output, re.MULTILINE)
        assert len(said) >= 2
        assert {Path(path).parent for path in said} == {run / "videos" / f"policy_{policy_id:02d}"}
        assert all(Path(path).stat().st_size > 1000 for path in said)
    assert not [path for path in (run / "videos").rglob("*") if path.is_file() and path.suffix != ".mp4"]
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    assert events.Tags()["images"] == ["policy_00/video", "policy_01/video"]


def test_the_best_checkpoint_of_every_policy_is_the_best_evaluated(killed):
    run, _ = killed
    records = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    for policy_id in range(2):
        scores = {
            record["env_steps"]: record["statistics"]["return"]["mean"]
            for record in records
            if record["policy_id"] == policy_id
        }
        best = load_policy(run, "best", policy_id)
        score = best_checkpoint.best_score(run / "checkpoints" / f"policy_{policy_id:02d}")
        # The last evaluation may have ended without a word, since the run did.
        assert score == np.max(list(scores.values())) == scores[best.env_steps] or best.env_steps not in scores
        assert score >= np.max(list(scores.values()))


GIF = b"GIF89a" + (4).to_bytes(2, "little") + (3).to_bytes(2, "little")


@pytest.fixture
def made(tmp_path):
    """Of two policies: what takes reports, and what is written."""
    done, written = [], []
    orders = SimpleNamespace(done=lambda: done.append(1))
    directories = [tmp_path / "policy_00", tmp_path / "policy_01"]
    writer = SimpleNamespace(write_video=written.append)
    return Videos(orders, directories, 4, writer), directories, written


def filmed(*paths, failures=()):
    videos = [
        {"policy_id": policy_id, "env_steps": 100, "path": str(path), "returns": [1.0, 2.0], "is_cut": False}
        for policy_id, path in enumerate(paths)
    ]
    return Filmed(videos, list(failures), env_steps=200)


def test_each_policys_video_is_handed_on_with_its_name_and_said(made, said):
    videos, directories, written = made
    paths = [video_files.free_path(directory, 100) for directory in directories]
    for path in paths:
        video_files.write_preview(path, GIF)
    videos.filmed(filmed(*paths))
    assert [(one.name, one.path) for one in written] == [
        (f"policy_{n:02d}/video", path) for n, path in enumerate(paths)
    ]
    assert (written[0].env_frames, written[0].gif, written[0].size) == (800, GIF, (4, 3))
    assert said[1] == f"video of policy 1 at 100 env steps: {paths[1]}, mean return 1.50"
    assert not list(directories[0].iterdir())  # the small copy is taken


def test_a_failure_is_said_once_until_a_video_succeeds(made, said):
    videos, *_ = made
    for failures in (["no room"], ["no room"], [], ["no room"]):
        videos.filmed(filmed(failures=failures))
    assert ["no room" in each for each in said] == [True, True]


def test_what_a_dead_evaluator_was_making_is_removed_and_no_video(made):
    videos, directories, *_ = made
    whole = video_files.free_path(directories[0], 100)
    whole.touch()
    (directories[0] / ".video_000000000200.mp4.7.tmp").touch()
    video_files.write_preview(whole, GIF)
    (preview,) = directories[0].glob(".video_*.gif")
    temporary_beside(preview).touch()
    videos.remove_unfinished()
    assert list(directories[0].iterdir()) == [whole]
