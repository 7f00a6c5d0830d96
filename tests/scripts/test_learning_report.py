"""The report of what trainers learn: from the records of runs to a table, data and a picture."""

import json

import numpy as np
import pytest
from learning import aggregates, comparison, report
from learning.results import newest_own
from learning.tasks import Task
from matplotlib import pyplot as plt

TASKS = {
    "easy": Task("easy", "Easy-v0", 1_000, at_least=100.0, random=0.0),
    "hard": Task("hard", "Hard-v0", 2_000, at_least=10.0, random=-10.0),
    "noted": Task("noted", "Noted-v0", 2_000),
}


def record(task, trainer, seed, score, **others):
    """A finished run. Its deterministic score is 1 higher, that of its training 1 lower."""
    return {
        "trainer": trainer,
        "title": trainer.partition("@")[0],
        "task": task,
        "frames": TASKS[task].frames,
        "seed": seed,
        "settings": {"episodes": 100},
        "at_least": TASKS[task].at_least,
        "state": "finished",
        "stochastic": score,
        "deterministic": score + 1,
        "training": score - 1,
        "frames_to_score": None,
        "seconds_to_score": None,
        **others,
    }


def rows_of(text):
    """Of the first table: the cells of each line by its trainer."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {line[3]: line for line in lines[2:] if len(line) == len(report.HEADER)}


def test_a_line_has_the_scores_of_all_seeds():
    records = [record("easy", "own@abc", seed, score) for seed, score in ((1, 90.0), (2, 100.0), (3, 125.0))]
    records[0] |= {"frames_to_score": 400, "seconds_to_score": 4.0}
    records[2] |= {"frames_to_score": 800, "seconds_to_score": 10.0}
    compared = comparison.compare(records, TASKS)
    line = rows_of(report.as_markdown(compared))["own"]
    assert line[:3] == ["easy", "1,000", "100"]
    (row,) = compared.rows
    (cell,) = row.trainers
    assert line[4:] == ["3", str(cell.stochastic), "106.0", "600 frames, 7 s (2 of 3)", "yes"]
    assert (cell.stochastic.iqm, cell.scores) == (105.0, (90.0, 100.0, 125.0))
    half = 4.303 * np.std(cell.scores, ddof=1) / np.sqrt(3)  # of three seeds it is the interval of Student's t
    assert (cell.stochastic.low, cell.stochastic.high) == pytest.approx((105.0 - half, 105.0 + half), rel=0.02)


def test_failures_and_missing_scores_are_shown():
    failed = {**record("easy", "own@abc", 2, 0.0), "state": "failed", "why": "no memory"}
    of_training = {"stochastic": None, "deterministic": None}
    records = [
        record("easy", "own@abc", 1, 99.0),
        failed,
        record("easy", "sample_factory", 1, 120.0, **of_training),
        {**failed, "trainer": "stable_baselines3", "title": "stable_baselines3"},
    ]
    lines = rows_of(report.as_markdown(comparison.compare(records, TASKS)))
    assert lines["own"][4:] == ["1 (1 failed)", "99.0", "100.0", "-", "no"]
    assert lines["sample_factory"][4:] == ["1", "119.0*", "-", "-", "yes"]
    assert lines["stable_baselines3"][4:] == ["0 (1 failed)", "-", "-", "-", "-"]


def test_of_several_settings_the_last_count():
    earlier = [record("easy", "own@abc", seed, 10.0, settings={"episodes": 5}) for seed in (1, 2, 3)]
    compared = comparison.compare([*earlier, record("easy", "own@abc", 1, 99.0)], TASKS)
    assert compared.rows[0].trainers[0].scores == (99.0,)
    assert "3 results with other settings are left out" in report.as_markdown(compared)


def test_states_of_this_project_are_one_trainer_of_what_came_last():
    records = [
        record("easy", "own@abc", 1, 50.0, commit="abc"),
        record("easy", "own@abc", 2, 60.0, commit="abc"),
        record("easy", "peer", 1, 70.0, commit=None),
        record("easy", "own@def lr=1", 1, 90.0, commit="def", settings={"flags": {"lr": 1}}),
        record("hard", "own@def", 1, 5.0, commit="def"),
        record("easy", "own@abc", 1, 20.0, commit="abc"),  # made again, so that it came last
        record("hard", "own@abc", 1, 4.0, commit="abc"),
        record("hard", "own@def", 2, 6.0, commit="def"),
    ]
    compared = comparison.compare(newest_own(records), TASKS)
    assert compared.num_other_settings == 0
    easy, hard = compared.rows
    assert [(cell.title, cell.scores, cell.commits) for cell in easy.trainers] == [
        ("this project", (20.0, 60.0), ("abc",)),
        ("peer", (70.0,), ()),
    ]
    (cell,) = hard.trainers
    assert (cell.scores, cell.commits) == ((4.0, 6.0), ("abc", "def"))
    assert [line[3] for line in rows_of(report.as_markdown(compared)).values()] == [
        "this project (abc)",
        "peer",
        "this project (abc, def)",
    ]


def test_runs_in_an_environment_that_has_changed_meanwhile_are_not_averaged_with_those_before():
    records = [
        record("easy", "own@abc", 1, 0.0, commit="abc", settings={"environment": "old"}),
        record("easy", "own@abc", 2, 0.0, commit="abc", settings={"environment": "old"}),
        record("easy", "own@def", 1, 10.0, commit="def", settings={"environment": "new", "flags": {}}),
    ]
    compared = comparison.compare(newest_own(records), TASKS)
    assert [cell.scores for row in compared.rows for cell in row.trainers] == [(10.0,)]
    assert compared.num_other_settings == 2


def test_all_tasks_together_are_those_that_trainers_share():
    records = [record("easy", name, seed, 50.0 * seed) for name in ("own@abc", "sb3", "sf") for seed in (1, 2)]
    records += [record("hard", name, seed, 0.0) for name in ("own@abc", "sb3") for seed in (1, 2)]
    records += [record("noted", name, seed, 9.0) for name in ("own@abc", "sb3") for seed in (1, 2)]
    (overall,) = comparison.compare(records, TASKS).overall  # with sf there is but one task
    assert overall.tasks == ("easy (1,000)", "hard (2,000)")
    assert overall.num_seeds == 2
    # 0.5 and 1 of the one task, 0.5 and 0.5 of the other: without the outer quarters 0.5 and 0.5
    assert {title: each.iqm for title, each in overall.normalised.items()} == {"own": 0.5, "sb3": 0.5}


@pytest.mark.parametrize(
    ("seeds_of_tasks", "num_seeds", "together"),
    [((5, 3, 3), 3, "abc"), ((3, 3, 1), 3, "ab"), ((2, 1, 3), 1, "abc"), ((5, 5, 3, 3), 3, "abcd")],
)
def test_all_tasks_together_have_as_many_seeds_as_most_of_them(seeds_of_tasks, num_seeds, together):
    tasks = {name: Task(name, "Easy-v0", 1_000, at_least=100.0, random=0.0) for name in "abcd"}
    records = [
        {**record("easy", trainer, seed, 10.0), "task": name}
        for name, num in zip(tasks, seeds_of_tasks, strict=False)
        for trainer in ("own@abc", "sb3")
        for seed in range(num)
    ]
    (overall,) = comparison.compare(records, tasks).overall
    assert overall.num_seeds == num_seeds
    assert overall.tasks == tuple(f"{name} (1,000)" for name in together)


def test_the_report_is_a_table_data_and_a_picture(tmp_path):
    trainers = [f"own@{commit}" for commit in "ab"] + ["sb3"]
    records = [record(task, name, seed, 9.0 * seed) for task in TASKS for name in trainers for seed in (1, 2, 3)]
    said = report.make(records, TASKS, tmp_path)
    assert said == (tmp_path / "report.md").read_text()
    data = json.loads((tmp_path / "report.json").read_text())
    assert [row["task"] for row in data["rows"]] == list(TASKS)
    assert data["rows"][0]["trainers"][0]["stochastic"] == vars(aggregates.estimate(np.array([[9.0], [18.0], [27.0]])))
    picture = plt.imread(tmp_path / "report.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.01, "it is blank"


def test_the_scores_of_all_seeds_are_one_interquartile_mean_with_an_interval():
    scores = np.arange(12.0).reshape(4, 3)
    found = aggregates.estimate(scores)
    assert found.iqm == pytest.approx(np.mean(range(3, 9)))
    assert 0 < found.low < found.iqm < found.high < 11
    assert aggregates.estimate(scores) == found
    assert aggregates.estimate(scores[:1]) == aggregates.Estimate(np.mean([0, 1, 2]), None, None)
    assert aggregates.estimate(np.ones((3, 1))) == aggregates.Estimate(1.0, None, None)
