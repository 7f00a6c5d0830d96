"""Whatever lies in the files of a run: its page and its curves show what is whole, or one sentence names the file."""

import json

import pytest

pytest.importorskip("matplotlib")

from written_runs import record, write_run

from sf.metrics.system_info import read_starts
from sf.storage.run_dir import RunDir
from sf.tools.report import facts, page, plot
from sf.tools.report.runs import load

GOOD = [json.dumps(record(step, float(step))).encode() for step in range(1, 6)]
NOT_RECORDS = [
    b"{",
    b"[1, 2]",
    b"3",
    b"null",
    b"{}",
    b'"text"',
    b'{"env_steps": "many"}',
    b"\xff\xfe\x00garbage",
    b"\x00" * 100,
    b"[" * 100_000,
    b'{"a": ' * 50_000,
    b'{"env_steps": ' + b"9" * 5000 + b"}",
    GOOD[0][:50] + GOOD[1],  # cut off by a crash, and gone on with in the same line
]


@pytest.fixture
def commands(tmp_path, status_of, capsys):
    """Run `sf-report` and `sf-plot` on a run, in turn."""

    def run_both(path):
        yield status_of(page.main, path, "--out", tmp_path / "out.html"), *capsys.readouterr()
        yield status_of(plot.main, path, "--out", tmp_path / "out.svg"), *capsys.readouterr()

    return run_both


def write(path, *lines, end=b"\n"):
    (path / "metrics.jsonl").write_bytes(b"\n".join(lines) + end)


def write_settings(path, *settings):
    """Each a line of config.yaml, in the place of that of the same name."""
    names = tuple(setting.partition(":")[0] + ":" for setting in settings)
    lines = (path / "config.yaml").read_text().splitlines()
    others = [line for line in lines if not line.startswith(names)]
    (path / "config.yaml").write_text("\n".join([*others, *settings]) + "\n")


def test_lines_that_are_no_records_are_named_and_the_others_are_shown(tmp_path, commands):
    path = write_run(tmp_path / "a")
    write(path, *GOOD[:2], NOT_RECORDS[0], b"", *NOT_RECORDS[1:], *GOOD[2:])
    assert [record["env_steps"] for record in load(path).records] == [1000, 2000, 3000, 4000, 5000]
    for status, out, err in commands(path):
        assert (status, err.count("\n")) == (0, 1), err
        assert "metrics.jsonl, line 3," in err
        assert f"and {len(NOT_RECORDS) - 1} lines" in err
        assert out != ""


def test_a_run_without_a_line_that_is_a_record_is_refused_with_the_line(tmp_path):
    path = write_run(tmp_path / "a")
    for line in NOT_RECORDS:
        write(path, line, line)
        with pytest.raises(ValueError, match=r"metrics\.jsonl, line 1,"):
            load(path)


def test_a_last_line_that_is_being_written_is_nothing_to_speak_of(tmp_path, commands):
    path = write_run(tmp_path / "a")
    write(path, *GOOD, GOOD[0][:30], end=b"")
    for status, _, err in commands(path):
        assert (status, err) == (0, "")
    write(path, GOOD[0][:30], end=b"")
    for status, _, err in commands(path):
        assert (status, err.count("\n")) == (2, 1)
        assert "has no record yet" in err


NOT_NUMBERS = [None, True, "text", "", [], {}, [[[1]]], {"a": {}}, float("nan"), float("inf"), 1e308, -1e308, 10**400]


def of(value):
    """A record in which everything is that value."""
    return dict.fromkeys([*record(1, 1.0), "episodes_in_mean", "policy_00/episodes_in_mean"], value)


def test_a_value_that_is_no_number_is_no_part_of_a_record(tmp_path):
    path = write_run(tmp_path / "a", stats_avg=10)
    for value in NOT_NUMBERS:
        write(path, *GOOD, json.dumps({**of(value), "mine": 7}).encode())
        assert load(path).records[-1] == {"mine": 7}


def test_a_summary_with_such_values_says_how_the_run_stands(tmp_path):
    run = load(write_run(tmp_path / "a", train_for_env_steps=10))
    for value in NOT_NUMBERS:
        (tmp_path / "a" / "summary.json").write_text(json.dumps({**of(value), "seconds": 1e9, "stopped_by": value}))
        summary = facts.read_summary(run)
        assert facts.status(run, summary, 0.0).sentence
        assert len(facts.key_figures(run, summary)) >= 4
        assert facts.system_rows(dict.fromkeys(("gpus", "versions", "cores", "usable_cores", "cpu"), value))


SETTINGS = {
    "env": [3, None, [], {"a": 1}, True, 1.5],
    "num_policies": [0, -1, 1.5, True, None, "three", [1], {}, float("nan")],
    "stats_avg": [0, -5, "x", None, [], float("inf")],
    "summaries_every_sec": [0, None, "often", [], True],
    "train_for_env_steps": ["x", [], {}, True, float("nan")],
    "train_for_seconds": ["x", [], {}],
}


def test_a_setting_that_the_commands_cannot_read_is_named_with_its_file(tmp_path):
    path = write_run(tmp_path / "a")
    for name, value in ((name, value) for name, values in SETTINGS.items() for value in values):
        written = json.dumps(value).replace("NaN", ".nan").replace("Infinity", ".inf")
        write_settings(path, f"{name}: {written}")
        with pytest.raises(ValueError, match=rf"config\.yaml: {name} is "):
            load(path)
        write_run(path)


NO_SETTINGS = [
    b"",
    b"[1, 2]",
    b"{",
    b"\xff\xfe\x00",
    b"a: 2001-13-45\nenv: a",
    b"env: a\nmine: &a [*a]",
    b"1: 2\nenv: a",
    b"env: !!python/object:os.system x",
    b"[" * 600 + b"]" * 600,
    b"env: a\nextends: nothing",
    b"env: a\nmine: 0x" + b"f" * 10_000,
]


def test_a_configuration_that_is_none_is_one_sentence(tmp_path):
    path = write_run(tmp_path / "a")
    for content in NO_SETTINGS:
        (path / "config.yaml").write_bytes(content)
        with pytest.raises(ValueError, match=r"config\.yaml|config is 'nothing'") as error:
            load(path)
        assert "\n" not in str(error.value)


def test_a_summary_or_a_machine_that_cannot_be_read_is_not_shown(tmp_path):
    path = write_run(tmp_path / "a")
    for content in (b"", b"{", b"\xff\x00", b"[" * 100_000, b"[3, {}]"):
        for name in ("summary.json", "system.json"):
            (path / name).write_bytes(content)
        assert facts.read_summary(load(path)) is None
        assert read_starts(RunDir(path)) in ([], [{}])
