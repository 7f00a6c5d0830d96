"""sf-plot: the picture that comes out, what it says, and one sentence where there is nothing to draw."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from written_runs import record, write_run

from sf.system.machine import extras
from sf.tools.report import figure, plot, style
from sf.tools.report.curves import Curve, band
from sf.tools.report.runs import find, load
from sf.tools.report.style import PALETTE


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


def run_command(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["sf-plot", *map(str, arguments)])
    plot.main()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_is_written_in_the_format_of_its_name(train_dir, suffix, monkeypatch, capsys):
    out = train_dir / "pictures" / f"curves{suffix}"
    run_command(monkeypatch, train_dir, "--out", out)
    beginning = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(beginning)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("toy_bandit, mean_return, learning_rate 0.0001: 2.5 [")
    assert said[0].endswith("at 120,000 env_frames, 2 runs")
    assert said[-1] == str(out)


def test_the_same_runs_give_the_same_file(train_dir, monkeypatch):
    pictures = []
    for name in ("a.svg", "b.svg"):
        run_command(monkeypatch, train_dir, "--out", train_dir / name)
        pictures.append((train_dir / name).read_bytes())
    assert pictures[0] == pictures[1]


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
    late = [json.dumps(record(step, 9.0)) + "\n" for step in (10, 20)]
    (write_run(tmp_path / "late", seed=2) / "metrics.jsonl").write_text("".join(late))
    drawn = panels(tmp_path)
    solid, dotted = figure.draw(drawn, "env_frames", 0.02).axes[0].get_lines()
    assert len(solid.get_xdata()) == 0
    assert (dotted.get_xdata()[0], dotted.get_xdata()[-1]) == (40_000, 80_000)
    assert figure.results(drawn, "env_frames") == ["toy_bandit, mean_return: 9 at 40,000 env_frames, 1 run"]


def test_the_last_value_is_a_mean_over_enough_episodes(tmp_path):
    path = write_run(tmp_path / "a", stats_avg=10)
    counts = ((1, 3.0, 10), (2, 4.0, 10), (3, 99.0, 1))
    lines = [json.dumps(record(step, level, episodes_in_mean=num)) + "\n" for step, level, num in counts]
    (path / "metrics.jsonl").write_text("".join(lines))
    assert figure.results(panels(path), "env_frames") == ["toy_bandit, mean_return: 4 at 8,000 env_frames, 1 run"]


def test_a_pattern_is_a_line_for_each_policy(tmp_path):
    path = write_run(tmp_path / "a")
    scores = {"policy_00/mean_return": 1.0, "policy_01/mean_return": 2.0}
    lines = [json.dumps(record(step, 1.5, **scores)) + "\n" for step in range(1, 5)]
    (path / "metrics.jsonl").write_text("".join(lines))
    (panel,) = panels(path, y=("policy_*/mean_return",))
    assert [line.label for line in panel.lines] == ["policy_00", "policy_01"]
    assert [line.band.mean[-1] for line in panel.lines] == [1.0, 2.0]


def test_seconds_are_shown_in_the_unit_of_their_size(tmp_path):
    drawn = panels(write_run(tmp_path / "a", np.zeros(200)), x="seconds")
    axis = figure.draw(drawn, "seconds", 0.02).axes[0]
    assert axis.get_xlabel() == "minutes"
    assert axis.get_lines()[0].get_xdata()[-1] == pytest.approx(400 / 60)


def test_a_label_of_many_settings_stands_below_the_panel_in_lines(tmp_path):
    write_run(tmp_path / "a", gamma=0.9, exploration_loss_coeff=0.25, adam_eps=1e-5)
    write_run(tmp_path / "b")
    panel, below = figure.draw(panels(tmp_path), "env_frames", 0.02).axes
    assert panel.get_legend() is None
    (first, _) = below.get_legend().get_texts()
    assert first.get_text() == "adam_eps 1e-05,\nexploration_loss_coeff 0.25, gamma 0.9"


def lines(labels):
    """A panel with a line for each label."""
    one = Curve(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    return figure.Panel("toy", "mean_return", tuple(figure.Line(label, band([one], 0.0), (one,)) for label in labels))


@pytest.mark.parametrize(
    "labels",
    [
        [f"s{idx}" for idx in range(16)],
        [f"seed {idx}" for idx in range(21)],
        [f"learning_rate 0.0{idx}, rollout 16, batch_size 4096" for idx in range(21)],
        [f"x {idx}, " + "learning_rate 0.001, " * 12 + "gamma 1" for idx in range(12)],
    ],
)
def test_a_legend_below_takes_no_room_from_its_panel(labels, recwarn):
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


def test_more_lines_than_a_legend_can_tell_apart_have_none_and_a_sentence_says_so(tmp_path, monkeypatch, capsys):
    for idx in range(22):
        write_run(tmp_path / f"{idx}", [1.0, 2.0])
    run_command(monkeypatch, tmp_path, "--group_by", "experiment", "--out", tmp_path / "a.svg")
    assert capsys.readouterr().err == (
        "toy_bandit, mean_return: 22 lines have no legend, because colours and dashes tell 21 apart: name fewer runs, "
        "or the settings that count with --group_by\n"
    )
    assert "no legend for more than 21 lines" in (tmp_path / "a.svg").read_text()


def test_a_picture_of_many_panels_stays_within_what_matplotlib_can_draw(tmp_path):
    drawn = Figure(figsize=(1.0, 400.0))
    style.save(drawn, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.height <= 30_000


def test_a_run_whose_name_begins_with_an_underscore_is_in_the_legend(tmp_path):
    for name in ("_a", "b"):
        write_run(tmp_path / name)
    legend = figure.draw(panels(tmp_path, by=("experiment",)), "env_frames", 0.02).axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["_a", "b"]


def test_runs_of_one_name_in_two_folders_are_two_lines(tmp_path):
    for folder, level in (("one", 1.0), ("two", 3.0)):
        write_run(tmp_path / folder / "doom", [level, level])
    (panel,) = panels(tmp_path, by=("experiment",))
    assert [(line.label, line.band.mean[-1]) for line in panel.lines] == [("one/doom", 1.0), ("two/doom", 3.0)]


@pytest.mark.parametrize(("step", "unit"), [(1, "seconds"), (100, "minutes"), (4000, "hours")])
def test_times_are_plain_numbers(tmp_path, step, unit):
    times = [record(idx, 1.0, seconds=0.25 * step * idx) for idx in range(1, 9)]
    (write_run(tmp_path / "a") / "metrics.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in times))
    drawn = figure.draw(panels(tmp_path, x="seconds"), "seconds", 0.0)
    FigureCanvasAgg(drawn).draw()
    assert drawn.axes[0].get_xlabel() == unit
    ticks = [text.get_text() for text in drawn.axes[0].get_xticklabels()]
    assert all(tick.replace("\N{MINUS SIGN}", "-") == f"{float(tick):g}" for tick in ticks)


def test_frames_keep_their_prefixes(tmp_path):
    drawn = figure.draw(panels(write_run(tmp_path / "a")), "env_frames", 0.02)
    FigureCanvasAgg(drawn).draw()
    assert "100k" in [text.get_text() for text in drawn.axes[0].get_xticklabels()]


def test_a_run_of_one_record_says_to_wait_for_the_second(tmp_path):
    with pytest.raises(ValueError, match="two records with it and env_frames: wait for the second one"):
        panels(write_run(tmp_path / "a", [1.0]))


def test_controls_and_letters_without_a_glyph_make_a_picture_that_can_be_read(tmp_path, monkeypatch, capsys, recwarn):
    write_run(tmp_path / "\u5b9f\u9a13", env="module:a\x1b[2Jb\x01")
    write_run(tmp_path / "c\x1bd", env="module:a\x1b[2Jb\x01")
    write_run(tmp_path / "e\x1bf", [])
    for name in ("a.svg", "a.png"):
        run_command(monkeypatch, tmp_path, "--group_by", "experiment", "--out", tmp_path / name)
    ElementTree.parse(tmp_path / "a.svg")
    said = capsys.readouterr()
    assert said.out.startswith("module:a\\x1b[2Jb\\x01, mean_return, ")
    assert ", c\\x1bd: " in said.out
    assert "e\\x1bf" in said.err
    assert "\x1b" not in said.out + said.err
    assert list(recwarn) == []


def test_names_are_text_and_no_formula(tmp_path, monkeypatch):
    for name in ("a$\\frac", "b$"):
        write_run(tmp_path / name, env="module:$\\frac$")
    run_command(monkeypatch, tmp_path, "--group_by", "experiment", "--out", tmp_path / "a.svg")
    assert "a$\\frac" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no run is named"),
        (["{runs}/nowhere"], "is no run and holds none"),
        (["{runs}", "--out", "picture.bmp"], "its name must end with .png, .svg or .pdf"),
        (["{runs}", "--out", "{runs}/other/config.yaml/a.png"], "cannot be written"),
        (["{runs}", "--y", "mean_retrun"], "did you mean mean_return"),
        (["{runs}", "--group_by", "gama"], "did you mean gamma"),
        (["{runs}", "--smooth", "2"], "a share of the axis, from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(train_dir, arguments, sentence, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        run_command(monkeypatch, *(argument.format(runs=train_dir) for argument in arguments))
    assert end.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("name", "why"), [("picture.png", "Is a directory"), (f"{300 * 'a'}.png", "File name too long")]
)
def test_a_picture_that_cannot_be_written_is_said_before_it_is_drawn(
    name, why, train_dir, tmp_path, monkeypatch, capsys
):
    (tmp_path / "picture.png").mkdir()
    monkeypatch.setattr(figure, "panels", None)
    with pytest.raises(SystemExit) as end:
        run_command(monkeypatch, train_dir, "--out", tmp_path / name)
    assert end.value.code == 2
    assert f"cannot be written ({why}): name another --out" in " ".join(capsys.readouterr().err.split())


def test_ctrl_c_ends_the_command_without_a_traceback(train_dir, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(plot, "load_all", interrupted)
    with pytest.raises(SystemExit) as end:
        run_command(monkeypatch, train_dir)
    assert end.value.code == 130


def test_without_matplotlib_the_command_says_what_to_install(train_dir, monkeypatch, capsys):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as end:
        run_command(monkeypatch, train_dir)
    assert end.value.code == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err
