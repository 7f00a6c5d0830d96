"""The table of environments of other packages. What is tried needs a network, so it is a command of its own."""

import json
import sys

import pytest
import try_environments
import yaml

TRAINED = {
    "env": "walks/Walk-v0",
    "versions": {"walks": "1.2", "gymnasium": "1.4.0"},
    "random_play": {"mean_return": -3.25, "frames_per_s": 1234.5},
    "trained": {"mean_return": None, "env_frames_per_second": 99.6},
}
FAILED = {"env": "Stroll-v0", "versions": {}, "failed": "a | b"}


def test_a_row_has_random_actions_and_training_side_by_side_and_failures_have_a_table_of_their_own():
    lines = try_environments.table({"walk": TRAINED, "stroll": FAILED}).splitlines()
    assert lines[2] == "| `walks/Walk-v0` | walks 1.2 | -3.25 | - | 1,234 / 100 |"
    assert lines[4].startswith("| `--env` | versions | why not |")
    assert lines[6] == "| `Stroll-v0` | - | a / b |"


def test_the_page_has_the_table_of_the_results():
    results = json.loads((try_environments.REPOSITORY / "benchmarks" / "environments.json").read_text())
    page = try_environments.PAGE.read_text()
    begin, end = try_environments.TABLE_BEGINS, try_environments.TABLE_ENDS
    assert page.partition(begin)[2].partition(end)[0] == try_environments.table(results)


def test_every_candidate_can_be_read_and_has_a_result():
    listed = yaml.safe_load(try_environments.LIST.read_text())
    candidates = {name: try_environments.Candidate(**entry) for name, entry in listed.items()}
    assert len(candidates) > 30
    results = json.loads((try_environments.REPOSITORY / "benchmarks" / "environments.json").read_text())
    assert results.keys() == candidates.keys()


def test_an_unknown_name_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["try_environments.py", "no_such"])
    with pytest.raises(SystemExit) as end:
        try_environments.main()
    assert end.value.code == 2
    assert "names has no_such: environments_to_try.yaml has minigrid" in capsys.readouterr().err


def test_results_of_names_that_have_left_the_list_stay(tmp_path, monkeypatch):
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"stroll": FAILED}))
    name = next(iter(yaml.safe_load(try_environments.LIST.read_text())))
    monkeypatch.setattr(try_environments, "tried", lambda *args: TRAINED)
    monkeypatch.setattr(try_environments.shutil, "which", lambda name: "uv")
    monkeypatch.setattr(sys, "argv", ["try_environments.py", name, "--results", str(file)])
    try_environments.main()
    assert json.loads(file.read_text()) == {name: TRAINED, "stroll": FAILED}
