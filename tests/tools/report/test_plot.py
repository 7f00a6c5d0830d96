"""sf-plot: the picture that comes out, what it says, and one sentence where there is nothing to draw."""

from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from written_runs import record, write_run

from sf.storage.run_dir import RunDir
from sf.system.machine import extras
from sf.tools.report import figure, plot
from sf.tools.report.runs import find, load
from sf.tools.report.style import PALETTE
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.results import over_seeds, read_result


@pytest.fixture
def train_dir(tmp_path):
    """Two learning rates with two seeds each, and one run of another environment."""
    for rate in (0.001, 0.0001):
        for seed in (1, 2):
            levels = np.linspace(0.0, 1e4 * rate + seed, 30)
            write_run(tmp_path / f"{rate}_{seed}", levels, learning_rate=rate, seed=seed)
    write_run(tmp_path / "other", env="toy_memory")
    return tmp_path


def panels(*paths, x="env_frames", y=("mean_return",), by=(), smooth=0.02):
    return figure.panels([load(path) for path in find(paths)], x, y, by, smooth)


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_a_picture_is_written_in_the_format_of_its_name(train_dir, suffix, status_of, capsys):
    out = train_dir / "pictures" / f"curves{suffix}"
    assert status_of(plot.main, train_dir, "--out", out) == 0
    beginning = {".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(beginning)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("toy_bandit, mean_return, learning_rate 0.0001: 2.5 ")
    assert said[0].endswith("at 120,000 env_frames, 2 runs")
    assert said[-1] == str(out)
    if suffix == ".svg":
        assert status_of(plot.main, train_dir, "--out", train_dir / "again.svg") == 0
        assert (train_dir / "again.svg").read_bytes() == out.read_bytes()


def test_there_is_a_panel_for_each_environment_and_metric_and_a_line_for_each_group(train_dir):
    drawn = panels(train_dir, y=("mean_return", "train/entropy"))
    assert [(panel.env, panel.y) for panel in drawn] == [
        ("toy_bandit", "mean_return"),
        ("toy_memory", "mean_return"),
        ("toy_bandit", "train/entropy"),
        ("toy_memory", "train/entropy"),
    ]
    assert [line.label for line in drawn[0].lines] == ["learning_rate 0.0001", "learning_rate 0.001"]
    assert [len(line.runs) for line in drawn[0].lines] == [2, 2]
    axes = figure.draw(drawn, "env_frames", 0.02).axes
    assert [(axis.get_title(), axis.get_ylabel()) for axis in axes] == [(p.env, p.y) for p in drawn]
    first, second = axes[0].get_lines()
    assert (first.get_color(), second.get_color()) == PALETTE[:2]
    np.testing.assert_allclose(first.get_ydata(), drawn[0].lines[0].band.mean)
    assert axes[0].get_legend() is not None
    assert axes[1].get_legend() is None  # one line needs no name


def test_where_not_all_runs_have_come_so_far_the_line_is_dotted(tmp_path):
    write_run(tmp_path / "long", np.linspace(0, 10, 30), seed=1)
    write_run(tmp_path / "short", np.linspace(0, 10, 15), seed=2)
    drawn = panels(tmp_path)
    solid, dotted = figure.draw(drawn, "env_frames", 0.02).axes[0].get_lines()
    assert (solid.get_linestyle(), dotted.get_linestyle()) == ("-", ":")
    assert solid.get_xdata()[-1] <= 60_000 < dotted.get_xdata()[-1] == 120_000
    assert figure.results(drawn, "env_frames")[0].endswith(
        " at 59,820 env_frames, 2 runs"
    )  # on the axis, before 60,000


def test_runs_that_do_not_overlap_are_dotted_and_counted_where_they_are(tmp_path):
    write_run(tmp_path / "early", [1.0, 2.0], seed=1)
    write_run(tmp_path / "late", seed=2, records=[record(step, 9.0) for step in (10, 20)])
    drawn = panels(tmp_path)
    solid, dotted = figure.draw(drawn, "env_frames", 0.02).axes[0].get_lines()
    assert len(solid.get_xdata()) == 0
    assert (dotted.get_xdata()[0], dotted.get_xdata()[-1]) == (40_000, 80_000)
    assert figure.results(drawn, "env_frames") == ["toy_bandit, mean_return: 9 at 40,000 env_frames, 1 run"]


def test_a_finished_sweep_has_the_same_mean_and_interval_in_the_picture_and_in_its_table(tmp_path):
    """Episodes end after the last record, and the runs end some steps apart."""
    results = []
    for seed, final in enumerate((1.0, 2.0, 6.0)):
        summary = {"stopped_by": None, "mean_return": final, "env_frames": 400_000 + 1000 * seed}
        path = write_run(tmp_path / str(seed), np.zeros(100), summary, seed=seed)
        results.append(read_result(SweepRun(path.name, {}, seed, {}), RunDir(path), "done"))
    ((line,),) = (panel.lines for panel in panels(tmp_path))
    assert line.band.x[line.last_shared] == 402_000
    drawn = line.band.mean[-1], line.band.high[-1] - line.band.mean[-1]
    assert drawn == pytest.approx(over_seeds(results, "mean_return"))
    assert drawn == pytest.approx((3.0, 4.3027 * 7**0.5 / 3**0.5), rel=1e-4)


def test_a_pattern_is_a_line_for_each_policy(tmp_path):
    scores = {"policy_00/mean_return": 1.0, "policy_01/mean_return": 2.0}
    path = write_run(tmp_path / "a", records=[record(step, 1.5, **scores) for step in range(1, 5)])
    (panel,) = panels(path, y=("policy_*/mean_return",))
    assert [line.label for line in panel.lines] == ["policy_00", "policy_01"]
    assert [line.band.mean[-1] for line in panel.lines] == [1.0, 2.0]


def test_controls_and_letters_without_a_glyph_make_a_picture_that_can_be_read(tmp_path, status_of, capsys, recwarn):
    for name in ("\u5b9f\u9a13", "c\x1bd", "_a", "a$\\frac", "one/doom", "two/doom"):
        write_run(tmp_path / name, env="module:a\x1b[2Jb\x01$")
    write_run(tmp_path / "e\x1bf", [])
    for name in ("a.svg", "a.png"):
        assert status_of(plot.main, tmp_path, "--group_by", "experiment", "--out", tmp_path / name) == 0
    ElementTree.parse(tmp_path / "a.svg")
    said = capsys.readouterr()
    assert said.out.startswith("module:a\\x1b[2Jb\\x01$, mean_return, ")
    assert "a$\\frac" in (tmp_path / "a.svg").read_text()  # text, and no formula
    assert "e\\x1bf" in said.err
    assert "\x1b" not in said.out + said.err
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{runs}/nowhere"], "is not a run and has no run"),
        (["{runs}", "--out", "picture.bmp"], "out is picture.bmp"),
        (["{runs}", "--out", "{runs}/other/config.yaml/a.png"], "cannot be written"),
        (["{runs}", "--y", "mean_retrun"], "did you mean mean_return"),
        (["{runs}", "--smooth", "2"], "smooth is 2"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(train_dir, arguments, sentence, status_of, capsys):
    assert status_of(plot.main, *(argument.format(runs=train_dir) for argument in arguments)) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_without_matplotlib_the_command_says_what_to_install(train_dir, monkeypatch, capsys, status_of):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert status_of(plot.main, train_dir) == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err
