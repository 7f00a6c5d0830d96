"""What `sf-eval` prints and writes of an evaluation whose statistics have odd names."""

import csv

import pytest

from sf.evaluation.play.episodes import Played
from sf.evaluation.results import Evaluation
from sf.tools.commands import evaluate

STATS = {"per[/s]": 1.0, "speed[m/s]": 2.0, ":smile:": 3.0, "return": 4.0, "num_steps": 5.0, "match": 6.0}


@pytest.fixture
def evaluation():
    found = Evaluation("true_objective")
    found.episodes += [Played(n, 0, 0, 7.0, 8, 9, STATS) for n in range(2)]
    return found


def test_names_of_statistics_are_printed_as_they_are(evaluation, capsys):
    evaluate._print(evaluation, ["run[/s]:smile:"], {})
    printed = capsys.readouterr().out
    assert "run[/s]:smile:, 2 episodes" in printed
    means = dict(line.split()[:2] for line in printed.splitlines() if len(line.split()) > 2)
    assert (means["per[/s]"], means["speed[m/s]"], means[":smile:"]) == ("1.00", "2.00", "3.00")


def test_a_win_rate_and_its_interval_are_in_the_same_unit(capsys):
    found = Evaluation("true_objective")
    for match_idx, won in enumerate([1.0, 1.0, 0.0, 1.0]):
        found.episodes += [Played(match_idx, p, p, abs(p - won), 8, 9, {}) for p in (0, 1)]
    evaluate._print(found, ["a", "b"], {})
    *_, first, second = (line.split() for line in capsys.readouterr().out.splitlines() if "%" in line)
    assert first[-4:] == ["75.0%", "30.1%", "to", "95.4%"]
    assert second[-4:] == ["25.0%", "4.6%", "to", "69.9%"]


def test_a_statistic_of_a_taken_name_has_a_name_of_its_own(evaluation):
    means = {name: s.mean for name, s in evaluation.statistics(0).items()}
    assert (means["return"], means["num_steps"], means["num_frames"]) == (7.0, 8.0, 9.0)
    assert (means["stats/return"], means["stats/num_steps"], means["match"]) == (4.0, 5.0, 6.0)
    header, *rows = csv.reader(evaluate._csv(evaluation, ["run"]).splitlines())
    assert len(set(header)) == len(header)
    assert len(rows) == 2
    row = dict(zip(header, rows[0], strict=True))
    assert (row["match"], row["return"], row["num_steps"]) == ("0", "7.0", "8")
    assert (row["stats/match"], row["stats/return"], row["stats/num_steps"]) == ("6.0", "4.0", "5.0")
