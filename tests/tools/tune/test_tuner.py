"""A search whose runs are only claimed to train: what is told to Optuna, and when a run is ended."""

import json
from types import SimpleNamespace

import optuna
import pytest
import yaml

from sf.envs.errors import UsageError
from sf.learner.checkpoints.saver import _NOT_SAVED
from sf.run.startup.starting_flags import make_config
from sf.storage.run_dir import RunDir
from sf.tools.tune import results, tuner
from sf.tools.tune.curve import Curve
from sf.tools.tune.search import read_search
from sf.tools.tune.study import completed, importances, open_study, rungs
from sf.tools.tune.tuner import Tuner

END = 1000
NO_SIGNAL = SimpleNamespace(first=None)


class Pool:
    """Runs that do what `play` says when they are looked at: (run, how often it was looked at) -> status or None."""

    status_at_interrupt = 130

    def __init__(self, directory, play, places=1):
        self.directory, self.play, self.places = directory, play, places
        self.started, self.interrupted = [], []
        self.status_at_stop = 130
        self._looks = {}

    @property
    def has_place(self):
        return len(self._looks) < self.places

    @property
    def is_empty(self):
        return not self._looks

    def start(self, run):
        self.started.append(run.name)
        RunDir(self.directory / run.name).path.mkdir(exist_ok=True)
        self._looks[run.name] = (run, 0)

    def wait(self, signals):
        for name, (run, num_looks) in list(self._looks.items()):
            status = self.status_at_interrupt if run in self.interrupted else self.play(run, num_looks)
            self._looks[name] = (run, num_looks + 1)
            if status is not None:
                del self._looks[name]
                yield run, status

    def stop(self, signals):
        for run, _ in list(self._looks.values()):
            yield run, self.status_at_stop
        self._looks.clear()

    def interrupt(self, run):
        self.interrupted.append(run)

    def last_words(self, run):
        return ""


class Hunt:
    """One search in `tmp_path`; `start` is one start of the command."""

    def __init__(self, tmp_path, **file):
        self.directory = tmp_path / "tune"
        self.directory.mkdir(exist_ok=True)
        flags = {"env": "toy_bandit", "num_workers": 1, "train_for_env_steps": END}
        path = tmp_path / "tune.yaml"
        space = {"gamma": {"low": 0.1, "high": 0.9}, "num_epochs": [1, 2]}
        path.write_text(yaml.safe_dump({"flags": flags, "search": space, "trials": 4, **file}))
        self.search = read_search(path)
        self.said = []

    def start(self, play, signals=NO_SIGNAL, places=1, seed=0, status_at_stop=130):
        self.study = open_study(self.search, self.directory, END, seed, parallel=places)
        pool = Pool(self.directory, play, places)
        pool.status_at_stop = status_at_stop
        Tuner(self.search, self.study, self.directory, rungs(END), pool, self.said.append, lambda: None).run(signals)
        return pool

    def write(self, run, value, env_steps=END, ends=True):
        run_dir = RunDir(self.directory / run.name)
        record = {"env_steps": env_steps, "mean_return": value}
        with run_dir.metrics.open("a") as file:
            file.write(json.dumps(record) + "\n")
        if ends:
            run_dir.summary.write_text(json.dumps({**record, "stopped_by": None}))
            run_dir.config.write_text(yaml.safe_dump(dict(run.flags)))

    def ends_at_once(self, run, num_looks):
        self.write(run, run.point["gamma"])
        return 0

    def ends_after_ten_looks(self, run, num_looks):
        """The last of seven trials is bad from the beginning."""
        env_steps = (num_looks + 1) * END // 10
        value = -100.0 if run.name == "trial_00006" else 1.0
        self.write(run, value, env_steps, ends=env_steps == END)
        return 0 if env_steps == END else None

    def states(self):
        return [trial.state.name for trial in self.study.get_trials()]


def test_the_value_of_a_trial_is_the_mean_over_its_seeds_and_the_best_is_a_preset(tmp_path):
    hunt = Hunt(tmp_path, seeds=[1, 3], trials=4)

    def play(run, num_looks):
        hunt.write(run, run.point["gamma"] * run.seed)
        return 0

    hunt.start(play, places=2)
    assert hunt.states() == ["COMPLETE"] * 4
    values = [trial.value for trial in completed(hunt.study)]
    assert values == pytest.approx([2 * trial.params["gamma"] for trial in completed(hunt.study)])
    results.write_best(tmp_path / "best.yaml", hunt.study, hunt.search)
    best = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert best.items() >= {**hunt.search.flags, **results.ranked(hunt.study)[0].params}.items()
    assert best["gamma"] == pytest.approx(max(values) / 2)


@pytest.mark.parametrize("config", [None, "mine.yaml"])
def test_the_best_as_a_preset_is_what_its_trial_was_trained_with_its_preset_included(tmp_path, monkeypatch, config):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("learning_rate: 0.00777\ntrain_for_env_steps: 5\n")
    flags = {"env": "CartPole-v1", "train_for_env_frames": END}
    hunt = Hunt(tmp_path, flags=flags if config is None else {**flags, "config": config}, trials=1)
    hunt.start(hunt.ends_at_once)
    results.write_best(tmp_path / "best.yaml", hunt.study, hunt.search)
    best = make_config(config=str(tmp_path / "best.yaml"), train_dir=str(tmp_path), experiment="again").flat()
    chosen = hunt.search.suggest(optuna.trial.FixedTrial(hunt.study.best_params))
    trained = hunt.search.runs(0, chosen)[0].configured(tmp_path, "trial").flat()
    assert trained["learning_rate"] == (0.00777 if config else 0.0003)
    assert {name for name in best if best[name] != trained[name]} == {"config", "experiment", "restart_behavior"}


@pytest.mark.parametrize("status", [130, -2, -9])  # it saves first; it was still starting; a second Ctrl-C
def test_a_search_that_was_stopped_goes_on_with_the_same_run_and_no_trial_is_lost_or_twice(tmp_path, status):
    hunt = Hunt(tmp_path)
    signals = SimpleNamespace(first=None)

    def stops_at_the_third(run, num_looks):
        if run.name == "trial_00002":
            signals.first = 2
            return None
        return hunt.ends_at_once(run, num_looks)

    hunt.start(stops_at_the_third, signals, status_at_stop=status)
    assert hunt.states() == ["COMPLETE", "COMPLETE", "RUNNING"]
    before = hunt.study.get_trials()[2].params
    pool = hunt.start(hunt.ends_at_once)
    assert pool.started == ["trial_00002", "trial_00003"]
    assert hunt.states() == ["COMPLETE"] * 4
    assert hunt.study.get_trials()[2].params == before
    assert hunt.start(hunt.ends_at_once).started == []  # all are there


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_search_that_goes_on_tries_other_values(tmp_path, sampler):
    chosen = set()
    for trials in (3, 6, 9):
        hunt = Hunt(tmp_path, trials=trials, sampler=sampler)
        hunt.start(hunt.ends_at_once)
        chosen = {trial.params["gamma"] for trial in hunt.study.get_trials()}
    assert len(chosen) == 9


@pytest.mark.parametrize("places", [1, 2])
def test_a_run_that_cannot_be_started_now_is_started_later_and_ends_the_search_after_long(
    tmp_path, monkeypatch, places
):
    hunt = Hunt(tmp_path)
    start, num_refusals = Pool.start, [1000]

    def refuses_at_first(pool, run):
        if num_refusals[0] > 0:
            num_refusals[0] -= 1
            raise OSError("No space left on device")
        return start(pool, run)

    monkeypatch.setattr(Pool, "start", refuses_at_first)
    with pytest.raises(UsageError, match=r"trial_00000 cannot .*\(No space left on device\)"):
        hunt.start(hunt.ends_at_once, places=places)
    assert hunt.states() == ["RUNNING"]
    hunt.said.clear()
    num_refusals[0] = 5
    pool = hunt.start(hunt.ends_at_once, places=places)
    assert hunt.states() == ["COMPLETE"] * 4
    assert pool.started == [f"trial_0000{number}" for number in range(4)]
    assert sum("cannot be started" in sentence for sentence in hunt.said) == 1


def test_a_run_that_was_killed_goes_on_when_the_search_does(tmp_path):
    hunt = Hunt(tmp_path, trials=2)
    hunt.start(lambda run, n: -9 if run.name == "trial_00000" else hunt.ends_at_once(run, n))
    assert hunt.states() == ["RUNNING", "COMPLETE"]
    assert any(sentence.startswith("trial_00000 was killed") for sentence in hunt.said)
    assert hunt.start(hunt.ends_at_once).started == ["trial_00000"]
    assert hunt.states() == ["COMPLETE"] * 2


def test_a_run_that_had_ended_before_the_search_heard_of_it_is_not_run_again(tmp_path):
    hunt = Hunt(tmp_path, trials=1)
    signals = SimpleNamespace(first=None)

    def ends_unheard(run, num_looks):
        hunt.write(run, 7.0)
        signals.first = 2

    hunt.start(ends_unheard, signals)
    assert hunt.states() == ["RUNNING"]
    assert hunt.start(hunt.ends_at_once).started == []
    assert completed(hunt.study)[0].value == 7.0


def test_a_run_of_a_study_that_is_gone_counts_for_no_other_values(tmp_path):
    hunt = Hunt(tmp_path, trials=1)
    hunt.start(hunt.ends_at_once)
    gamma = hunt.study.get_trials()[0].params["gamma"]
    (hunt.directory / "study.journal").unlink()
    assert hunt.start(hunt.ends_at_once).started == []  # the same seed chooses the same values
    (hunt.directory / "study.journal").unlink()
    with pytest.raises(ValueError, match=r"trial_00000 was trained with \w+"):
        hunt.start(hunt.ends_at_once, seed=7)
    assert completed(hunt.study) == []
    assert hunt.study.get_trials()[0].params["gamma"] != gamma


def test_a_full_disk_ends_the_search_and_costs_no_trial(tmp_path, monkeypatch):
    hunt, words = (
        Hunt(tmp_path, trials=2),
        _NOT_SAVED.format("checkpoints", "No space left on device", "make room there"),
    )
    with monkeypatch.context() as full:
        full.setattr(Pool, "last_words", lambda self, run: f"error: {words}")
        with pytest.raises(UsageError, match=r"^trial_00000: error: .*No space left"):
            hunt.start(lambda run, num_looks: 1)
    assert hunt.states() == ["RUNNING"]
    pool = hunt.start(hunt.ends_at_once)
    assert pool.started == ["trial_00000", "trial_00001"]
    assert hunt.states() == ["COMPLETE"] * 2


def test_a_trial_that_fails_is_told_with_its_last_words_and_ends_no_search(tmp_path, monkeypatch):
    """Where the weights have diverged the run cannot save its last checkpoint either, and the disk is not full."""
    words = "FloatingPointError: the last checkpoint could not be written: the weights are not finite"
    monkeypatch.setattr(Pool, "last_words", lambda self, run: words)
    hunt = Hunt(tmp_path, seeds=2, trials=2)
    pool = hunt.start(lambda run, n: 1 if "00000" in run.name else hunt.ends_at_once(run, n))
    assert hunt.states() == ["FAIL", "COMPLETE"]
    assert "trial_00000_seed=1" not in pool.started  # its other seed could tell nothing any more
    assert any(f"trial_00000_seed=0 failed (status 1): {words}" in sentence for sentence in hunt.said)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_values_that_do_not_go_together_are_drawn_anew_and_do_not_count(tmp_path, sampler):
    flags = {"env": "toy_bandit", "num_workers": 1, "train_for_env_steps": END}
    space = {"rollout": [32, 48], "batch_size": [256, 384], "gamma": {"low": 0.1, "high": 0.9}}
    hunt = Hunt(tmp_path, flags=flags, search=space, trials=12, seeds=2, sampler=sampler)
    signals = SimpleNamespace(first=None)
    trained = []

    def play(run, num_looks):
        trained.append((run.point["rollout"], run.point["batch_size"]))
        if len(trained) == 12:
            signals.first = 2
        return hunt.ends_at_once(run, num_looks)

    hunt.start(play, signals)
    hunt.start(play)
    assert len(trained) == 24
    assert (48, 256) not in trained
    states = hunt.states()
    assert states.count("COMPLETE") == 12
    num_unfit = states.count("FAIL")
    assert len(states) == 12 + num_unfit
    assert num_unfit > 0
    sentence = "its values do not go together, so others are drawn (batch_size is 256: it must be a multiple of rollout"
    assert sum(sentence in said for said in hunt.said) == num_unfit
    results.write_csv(tmp_path / "trials.csv", hunt.study, hunt.search)
    assert (tmp_path / "trials.csv").read_text().count(",not run,") == num_unfit


def test_where_no_values_go_together_the_search_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(tuner, "_MOST_UNFIT", 20)
    flags = {"env": "toy_bandit", "num_workers": 1, "train_for_env_steps": END}
    hunt = Hunt(tmp_path, flags=flags, search={"rollout": [48], "batch_size": [256, 320]})
    with pytest.raises(UsageError, match="none of 20 combinations"):
        hunt.start(hunt.ends_at_once)


def test_while_the_search_ends_for_a_misspelt_objective_all_other_runs_are_waited_for(tmp_path):
    hunt = Hunt(tmp_path, objective="mean_retrun", trials=3)

    def play(run, num_looks):
        if num_looks == 0:
            hunt.write(run, 1.0)
        return 0 if num_looks else None

    with pytest.raises(UsageError, match="did you mean mean_return"):
        hunt.start(play, places=3, status_at_stop=0)
    assert hunt.states() == ["RUNNING", "FAIL", "FAIL"]


@pytest.mark.parametrize(
    ("objective", "more", "state", "said"),
    [
        ("eval/mean_return", {"eval/mean_return": 7.0}, "COMPLETE", "eval/mean_return 7"),
        ("eval/mean_return", {}, "FAIL", "has no eval/mean_return"),  # the evaluation has not come yet
        ("mean_return", {"mean_return": None}, "FAIL", "without a value of mean_return"),
        ("stats/wins", {}, "FAIL", "has no stats/wins"),
    ],
)
def test_the_objective_may_be_in_some_records_alone_or_lacking(tmp_path, objective, more, state, said):
    hunt = Hunt(tmp_path, objective=objective, trials=1)

    def play(run, num_looks):
        with RunDir(hunt.directory / run.name).metrics.open("a") as file:
            file.write(json.dumps({"env_steps": END - 1, "mean_return": 1.0, **more}) + "\n")
        hunt.write(run, more.get("mean_return", 1.0))
        return 0

    hunt.start(play)
    assert hunt.states() == [state]
    assert any(said in sentence for sentence in hunt.said)


@pytest.mark.parametrize(("pruner", "status"), [("median", 130), ("median", 1), ("none", None)])
def test_a_trial_that_is_worse_than_most_is_pruned_however_its_run_ends(tmp_path, monkeypatch, pruner, status):
    """Of a run that was interrupted: 130, it saves; 1, it was at its very beginning."""
    hunt = Hunt(tmp_path, trials=7, pruner=pruner)
    monkeypatch.setattr(Pool, "status_at_interrupt", status)
    pool = hunt.start(hunt.ends_after_ten_looks)
    assert hunt.states() == ["COMPLETE"] * 6 + ["COMPLETE" if status is None else "PRUNED"]
    assert [run.name for run in pool.interrupted] == ([] if status is None else ["trial_00006"])


def test_a_trial_that_is_pruned_before_its_run_is_started_again_is_told_as_pruned(tmp_path):
    hunt, signals, runs = Hunt(tmp_path, trials=7), SimpleNamespace(first=None), {}

    def stops_in_the_last_two(run, num_looks):
        if run.name not in ("trial_00005", "trial_00006"):
            return hunt.ends_after_ten_looks(run, num_looks)
        runs[run.name] = run
        signals.first = 2 if len(runs) == 2 else None
        return None

    hunt.start(stops_in_the_last_two, signals, places=2)
    assert hunt.states() == ["COMPLETE"] * 5 + ["RUNNING"] * 2
    for env_steps in range(END // 10, END // 2, END // 10):
        hunt.write(runs["trial_00006"], -100.0, env_steps, ends=False)
    assert hunt.start(hunt.ends_after_ten_looks, places=1).started == ["trial_00005"]
    assert hunt.states() == ["COMPLETE"] * 6 + ["PRUNED"]


def test_trials_with_few_records_are_compared_only_where_they_have_been(tmp_path):
    """Of each of them there is a record late in the run alone."""
    hunt = Hunt(tmp_path, trials=7)

    def play(run, num_looks):
        hunt.write(run, float(run.name[-1] != "6"), END * (9 + num_looks) // 10, ends=num_looks == 1)
        return 0 if num_looks == 1 else None

    hunt.start(play)
    told = [trial.intermediate_values for trial in hunt.study.get_trials()]
    assert told == [{900: 1.0}] * 6 + [{900: 0.0}]
    assert hunt.states()[-1] == "PRUNED"


def test_the_study_of_another_search_is_not_gone_on_with(tmp_path):
    Hunt(tmp_path).start(lambda run, n: 1)
    with pytest.raises(ValueError, match=r"study\.journal belongs to"):
        Hunt(tmp_path, seeds=3).start(lambda run, n: 1)


def test_what_decides_is_the_most_important(tmp_path):
    hunt = Hunt(tmp_path, trials=4, sampler="random", pruner="none")
    hunt.start(hunt.ends_at_once)
    assert importances(hunt.study) == {}  # of few trials
    hunt = Hunt(tmp_path, trials=30, sampler="random", pruner="none")
    hunt.start(hunt.ends_at_once)
    shares = importances(hunt.study)
    assert shares["gamma"] > 0.8 > shares["num_epochs"]
    assert results.draw(tmp_path / "search.png", hunt.study, hunt.search)
    assert (tmp_path / "search.png").read_bytes().startswith(b"\x89PNG")
    results.write_csv(tmp_path / "trials.csv", hunt.study, hunt.search)
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 31


def test_a_curve_is_read_between_the_records_around_each_rung_and_half_a_line_later(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    curve = Curve(metrics, "mean_return", [10, 20, 30])
    curve.read()
    assert curve.values == []
    metrics.write_text(
        '{"env_steps": 5, "mean_return": 1}\n{"env_steps": 12}\n{"env_steps": 15, "mean_return": 2}\n{"env'
    )
    curve.read()
    assert curve.values == [1.5]
    with metrics.open("a") as file:
        file.write('_steps": 35, "mean_return": 4}\n')
    curve.read()
    assert curve.values == [1.5, 2.5, 3.5]
    metrics.write_text('{"env_steps": 29, "mean_return": 1}\n{"env_steps": 30, "mean_return": 3}\n')
    late = Curve(metrics, "mean_return", [10, 20, 30, 40])
    late.read()
    assert late.values == [None, None, 3.0]


def test_means_over_few_episodes_after_a_resume_are_passed_over(tmp_path):
    def record(env_steps, mean, episodes):
        return json.dumps({"env_steps": env_steps, "mean_return": mean, "episodes_in_mean": episodes, "stats_avg": 100})

    metrics = tmp_path / "metrics.jsonl"
    first = [record(10, 1, 20), record(20, 2, 50), record(30, 3, 100)]
    resumed = [record(31, 90, 2), record(39, 80, 49), record(50, 5, 50)]
    metrics.write_text("".join(line + "\n" for line in [*first, *resumed]))
    curve = Curve(metrics, "mean_return", [10, 20, 30, 40, 50])
    curve.read()
    assert curve.values == [1, 2, 3, 4, 5]
    of_another = Curve(metrics, "env_steps", [10, 40])
    of_another.read()
    assert of_another.values == [10, 40]
    # Of a population, the episodes are those of all policies: 60 are few for four.
    metrics.write_text("".join(line + "\n" for line in [record(10, 1, 400), record(20, 9, 60), record(30, 3, 400)]))
    for num_policies, at_20 in ((1, 9), (4, 2)):
        curve = Curve(metrics, "mean_return", [10, 20, 30], num_policies)
        curve.read()
        assert curve.values == [1, at_20, 3]
