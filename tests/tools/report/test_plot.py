"""sf-plot: the picture that comes out, what it says, and one sentence where there is nothing to draw."""

from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from written_runs import record, write_run

from sf.storage.run_dir import RunDir
from sf.system.machine import extras
from sf.tools.report import figure, plot, style
from sf.tools.report.curves import Curve, band
from sf.tools.report.runs import find, load, load_all
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


def test_the_vertical_axis_fits_the_lines_whatever_their_intervals_and_their_first_records_are(tmp_path):
    rise = np.linspace(0.0, 10.0, 100)
    for seed in range(3):
        noise = np.zeros(100)
        noise[1:3] = 100.0 * (seed - 1)  # its mean over the seeds is 0
        write_run(tmp_path / "noisy" / str(seed), rise + noise, seed=seed)
    for seed in range(2):
        write_run(tmp_path / "apart" / str(seed), rise + 10.0 * seed, seed=seed)
    for seed in range(3):
        write_run(tmp_path / "flat" / str(seed), 5.0 + 0.1 * np.sin(np.arange(100) * (seed + 2)), seed=seed)
    limits = {}
    for name in ("noisy", "apart", "flat"):
        (panel,) = drawn = panels(tmp_path / name, smooth=0.0)
        limits[name] = figure.draw(drawn, "env_frames", 0.0).axes[0].get_ylim()
        low, high = limits[name]
        assert low < panel.lines[0].band.mean.min() < panel.lines[0].band.mean.max() < high
    assert np.diff(limits["noisy"]) < 1.5 * 10.0
    assert np.diff(limits["apart"]) < 3.5 * 20.0  # its interval is 127 high
    (flat,) = panels(tmp_path / "flat", smooth=0.0)
    inside = (flat.lines[0].band.low > limits["flat"][0]) & (flat.lines[0].band.high < limits["flat"][1])
    assert inside.mean() > 0.8


@pytest.mark.parametrize(("low", "high"), [(0.083, 0.917), (0.33, 0.56), (0.41, 0.46), (0.0002, 1.0), (0.02, 20.0)])
def test_a_log_axis_has_at_least_four_numbers(low, high):
    axis = Figure().subplots()
    axis.plot([0, 1], [low, high])
    style.log_scale(axis)
    bottom, top = axis.get_ylim()
    shown = [float(text.get_text()) for text in axis.get_yticklabels() if bottom <= text.get_position()[1] <= top]
    assert 4 <= len(set(shown)) <= 9


def test_a_pattern_is_a_line_for_each_policy(tmp_path):
    scores = {"policy_00/mean_return": 1.0, "policy_01/mean_return": 2.0}
    path = write_run(tmp_path / "a", records=[record(step, 1.5, **scores) for step in range(1, 5)])
    (panel,) = panels(path, y=("policy_*/mean_return",))
    assert [line.label for line in panel.lines] == ["policy_00", "policy_01"]
    assert [line.band.mean[-1] for line in panel.lines] == [1.0, 2.0]


def lines(labels):
    """A panel with a line for each label."""
    one = Curve(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    return figure.Panel("toy", "mean_return", tuple(figure.Line(label, band([one], 0.0), (one,)) for label in labels))


def test_a_legend_below_takes_no_room_from_its_panel(recwarn):
    labels = [f"x {idx}, " + "learning_rate 0.001, " * 12 + "gamma 1" for idx in range(12)]
    drawn = figure.draw([lines(labels), lines(["a", "b"])], "env_frames", 0.0)
    with style.house_style():
        FigureCanvasAgg(drawn).draw()
    panel, other, below = drawn.axes
    assert [" ".join(text.get_text().split()) for text in below.get_legend().get_texts()] == labels
    height = drawn.get_size_inches()[1]
    assert panel.get_position().height * height > 2.0  # inches
    assert panel.get_position().y0 == pytest.approx(other.get_position().y0)
    legend = below.get_legend().get_window_extent()
    assert 0 <= legend.y0 < legend.y1 < panel.get_tightbbox().y0
    assert panel.get_tightbbox().x0 <= legend.x0 < legend.x1 < other.get_tightbbox().x0
    assert list(recwarn) == []


def test_a_picture_of_many_panels_stays_within_what_matplotlib_can_draw(tmp_path):
    drawn = Figure(figsize=(1.0, 400.0))
    style.save(drawn, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.height <= 30_000


@pytest.mark.parametrize(("step", "unit"), [(1, "seconds"), (4000, "hours")])
def test_times_are_plain_numbers_in_the_unit_of_their_size_and_frames_have_prefixes(tmp_path, step, unit):
    write_run(tmp_path / "a", records=[record(idx, 1.0, seconds=0.25 * step * idx) for idx in range(1, 31)])
    drawn = figure.draw(panels(tmp_path, x="seconds"), "seconds", 0.0)
    FigureCanvasAgg(drawn).draw()
    assert drawn.axes[0].get_xlabel() == unit
    ticks = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in drawn.axes[0].get_xticklabels()]
    assert all(tick == f"{float(tick):g}" for tick in ticks)
    of_frames = figure.draw(panels(tmp_path), "env_frames", 0.02)
    FigureCanvasAgg(of_frames).draw()
    assert "100k" in [text.get_text() for text in of_frames.axes[0].get_xticklabels()]


def labels_of(path):
    """The texts of the legend with a line for each run."""
    of_runs = figure.panels(load_all([path], print), "env_frames", ("mean_return",), ("experiment",), 0.02)
    drawn = figure.draw(of_runs, "env_frames", 0.02)
    (legend,) = [legend for axis in drawn.axes if (legend := axis.get_legend()) is not None]
    return legend.get_texts()


def test_controls_and_letters_without_a_glyph_make_a_picture_that_can_be_read(tmp_path, status_of, capsys, recwarn):
    for name in ("\u5b9f\u9a13", "c\x1bd", "_a", "a$\\frac", "one/doom", "two/doom"):
        write_run(tmp_path / name, env="module:a\x1b[2Jb\x01$")
    write_run(tmp_path / "e\x1bf", [])
    for name in ("a.svg", "a.png"):
        assert status_of(plot.main, tmp_path, "--group_by", "experiment", "--out", tmp_path / name) == 0
    ElementTree.parse(tmp_path / "a.svg")
    said = capsys.readouterr()
    assert said.out.startswith("module:a\\x1b[2Jb\\x01$, mean_return, ")
    names = {text.get_text() for text in labels_of(tmp_path)}
    assert {"c\\x1bd", "_a", "one/doom", "two/doom", "a$\\frac"} < names
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
