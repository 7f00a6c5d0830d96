"""What is called with each record of a run and ends it: `on_record`, `--stop_at_return`, the example of the docs."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest
import runs
from pages import ROOT, blocks

import sf
from sf.metrics.progress import Progress
from sf.ranks.records import merged
from sf.run import trainer
from sf.run.record_hooks import RecordHooks, stop_at_return
from sf.shared.counters import Counters
from sf.storage.checkpoint import load_latest
from sf.tools.commands import cli


def test_the_first_that_asks_for_the_end_is_named_and_those_after_it_are_not_called():
    called = []
    hooks = RecordHooks({"a": lambda record: None, "b": lambda record: record["env_steps"] > 1, "c": called.append})
    hooks.call({"env_steps": 1})
    assert (hooks.stopped_by, called) == (None, [{"env_steps": 1}])
    hooks.call({"env_steps": 2})
    assert (hooks.stopped_by, len(called)) == ("b", 1)
    assert hooks.last_words() == "b asks the run to end"


def test_what_a_function_does_to_its_record_is_seen_by_nobody():
    record = {"env_steps": 1}
    RecordHooks({"a": dict.clear}).call(record)
    assert record == {"env_steps": 1}


@pytest.mark.parametrize("error", [KeyError("trial"), SystemExit(3)])
def test_what_a_function_raises_is_kept_until_the_run_has_saved(error):
    def fail(record):
        raise error

    hooks = RecordHooks({"on_record": fail})
    hooks.call({})
    assert (hooks.stopped_by, hooks.error) == ("on_record", error)
    assert hooks.last_words() == f"on_record raised {error!r}: the run saves and ends"


def test_a_return_counts_once_every_policy_has_it_over_as_many_episodes_as_are_averaged():
    progress = Progress(Counters.allocate(3), {"rollout": [0], "policy": [1], "learner": [2]}, 1, 2, num_policies=2)
    is_reached = stop_at_return(5.0, 2, 2, lambda: progress.are_judged)

    def after(*episodes):
        progress.add_episodes([[value, 1, 1, {}, policy_id, 0, 0.0] for value, policy_id in episodes])
        return is_reached(progress.record())

    assert not after()
    assert not after((9.0, 0), (9.0, 0), (9.0, 1))  # the second policy has played one
    assert not after((0.5, 1))
    assert after((9.5, 1))  # 0.5 and 9.5
    progress.policies[0].begin_anew()  # evolution has given it other weights
    assert not is_reached(progress.record())


def test_a_return_does_not_count_before_each_actor_has_ended_an_episode():
    rows = {"rollout": [0], "policy": [1], "learner": [2]}
    progress = Progress(Counters.allocate(3), rows, 1, stats_avg=4, num_actors=8)
    is_reached = stop_at_return(50.0, 4, 1, lambda: progress.are_judged)
    for actor in (0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3):
        progress.add_episodes([[60.0, 1, 1, {}, 0, actor, 0.0]])
        record, outlook = progress.record(), progress.outlook()
        assert not is_reached(record)
        assert record["mean_return"] is None
        assert progress.policies[0].objective("true_objective") is None
    assert (outlook.num_waited_for, outlook.has_enough_episodes) == (1, False)
    progress.add_episodes([[-220.0, 1, 1, {}, 0, 7, 0.0]])
    assert progress.record()["mean_return"] == 25.0  # seven of 60
    assert not is_reached(progress.record())


def test_the_episodes_of_all_ranks_count():
    is_reached = stop_at_return(5.0, 4, 1, lambda: True)
    ranks = [{"mean_return": 9.0, "episodes_in_mean": 2}, {"mean_return": None, "episodes_in_mean": 0}]
    assert not is_reached(merged(ranks))
    assert is_reached(merged([ranks[0], {"mean_return": 1.0, "episodes_in_mean": 2}]))  # 5.0 over 4
    assert not is_reached(merged([ranks[0], {"mean_return": 0.9, "episodes_in_mean": 2}]))


class Trial:
    """What a user's function sees; it answers when it has seen `patience` records of training.

    begins_at: env steps of earlier parts of the run.
    """

    def __init__(self, patience, begins_at=0, error=None):
        self.records = []
        self._patience = patience
        self._begins_at = begins_at
        self._error = error

    def __call__(self, record):
        self.records.append(record)
        is_over = len(self.of_training()) == self._patience
        if is_over and self._error is not None:
            raise self._error
        return is_over

    def of_training(self):
        return [record for record in self.records if record["env_steps"] > self._begins_at]


class Parts:
    """One run in three parts: stopped by an answer, by an exception, and at a return."""

    def __init__(self, path):
        def flags(*more):
            return cli.parse(runs.flags_of_run(path, "--summaries_every_sec", "0.1", *more))

        self.run = path / "toy_identity"
        self.answer = Trial(3)
        with redirect_stdout(StringIO()) as said:
            self.answered = trainer.train(flags(), self.answer)
            self.metrics = self._lines()
            self.error = Trial(2, self.answered["env_steps"], KeyError("pruned"))
            with pytest.raises(KeyError, match="pruned") as raised:
                trainer.train(flags(), self.error)
            self.raised = raised.value
            self.summary_of_error = json.loads((self.run / "summary.json").read_text())
            self.last = flags("--stop_at_return", "-1", "--stats_avg", "2")
            self.returned = trainer.train(self.last)
        self.said = said.getvalue()

    def _lines(self):
        return [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return Parts(tmp_path_factory.mktemp("train_dir"))


def test_it_is_called_with_every_record_and_not_again_after_it_has_answered(parts):
    assert parts.answer.records == parts.metrics
    assert len([record for record in parts.metrics if record["env_steps"]]) == 3


def test_a_run_that_it_stops_has_saved_and_says_by_whom(parts):
    assert parts.answered["stopped_by"] == "on_record"
    assert parts.answered["env_steps"] > 0
    assert "on_record asks the run to end" in parts.said
    assert f"checkpoint_000001_{parts.answered['env_steps']:012d}" in parts.said


def test_what_it_raises_reaches_the_caller_after_the_run_has_saved(parts):
    assert parts.raised is parts.error._error
    assert len(parts.error.of_training()) == 2
    assert parts.summary_of_error["stopped_by"] == "on_record"
    assert "on_record raised KeyError('pruned'): the run saves and ends" in parts.said
    assert "saved" in parts.said.rpartition("KeyError('pruned')")[2]


def test_a_run_stops_at_a_return_and_all_of_it_is_one_run(parts):
    assert parts.returned["stopped_by"] == "stop_at_return"
    assert parts.returned["episodes"] >= 2
    path, saved = load_latest(parts.run / "checkpoints")
    assert saved.state["env_steps"] == parts.returned["env_steps"] > parts.answered["env_steps"]
    assert path.name.startswith(("checkpoint_000002_", "checkpoint_000003_"))  # the last part may have trained nothing


def test_the_command_ends_well_where_the_return_is_reached_and_says_how_to_go_on(parts, capsys):
    with pytest.raises(SystemExit) as end:
        cli.report(parts.last, parts.returned)
    assert end.value.code == 0
    assert "--stop_at_return None" in capsys.readouterr().out


def test_what_is_no_function_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(ValueError, match="on_record is 3: "):
        sf.train(env="toy_identity", train_dir=str(tmp_path), on_record=3)
    assert list(tmp_path.iterdir()) == []


def test_early_stopping_in_the_documentation_stops_where_returns_rise_no_more(monkeypatch):
    (block,) = [b for b in blocks(ROOT / "docs" / "extending.md", "python") if "on_record=" in b]
    told = {}
    monkeypatch.setattr(sf, "train", lambda **flags: told.update(flags), raising=False)
    exec(compile(block, "extending.md", "exec"), {"__name__": "__main__"})
    assert cli.parse(["--env", told.pop("env")])  # the rest are flags, too
    stop = told.pop("on_record")
    assert set(told) <= set(sf.Config().flat())
    returns = [(None, 0), (9.0, 1), (1.0, 100), *((value, 100) for value in (3.0, 2.0, 3.0, 4.0, 4.0, 3.5, 4.0))]
    answers = [
        stop({"env_steps": 40_000 * i, "mean_return": mean, "episodes_in_mean": num})
        for i, (mean, num) in enumerate(returns)
    ]
    assert answers == [False] * 9 + [True]  # 120,000 steps after the first 4.0
