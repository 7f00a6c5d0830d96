"""sf-report: one file with everything in it, true of runs in whatever state, and safe to open."""

import json
import os
import re
import time
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from written_runs import record, write_run

from sf.league import record as league_record
from sf.league.population.record import PopulationRecord
from sf.metrics.system_info import record_start
from sf.storage.run_dir import RunDir
from sf.tools.report import charts, facts, page
from sf.tools.report import render as rendering
from sf.tools.report.runs import load

VOID = {"meta", "img", "br", "link", "input", "wbr"}


class Page(HTMLParser):
    """What a browser makes of it: tags in their order, open ones, ids, and text by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.open, self.text, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))


def render(path, x="env_frames", videos=(), now=None):
    run = load(path)
    now = run.directory.metrics.stat().st_mtime + 1000.0 if now is None else now
    return rendering.render(run, x, videos, now)


@pytest.fixture
def _without_charts(monkeypatch):
    """Pages have none of the drawings that take most of their time, as of a run without records."""
    monkeypatch.setattr(rendering, "charts", SimpleNamespace(sections=lambda run, x: []))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, and its page."""
    path = write_run(tmp_path_factory.mktemp("runs") / "one", summary={"stopped_by": None}, train_for_env_steps=30_000)
    record_start(RunDir(path))
    return path, render(path)


def test_the_page_is_whole_and_loads_nothing(finished):
    text = finished[1]
    parsed = Page(text)
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {value for tag, name, value in parsed.attributes if name in ("src", "href", "srcset", "data")} == set()
    assert set(re.findall(r"https?://[^\"' ]*", text)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert ("meta", "http-equiv", "Content-Security-Policy") in parsed.attributes
    drawings = text[text.index("<svg") :].split("<script")[0]
    assert "var(--c0)" in drawings  # colours are left to the style of the page
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []


def test_the_page_says_how_the_run_stands_and_what_was_set(finished):
    path, text = finished[0], finished[1].replace("<wbr>", "")
    assert '<span class="badge finished">finished</span>' in text
    for said in ("120,000", "0:01:00", "best return", "train_for_env_steps", "30000", "torch"):
        assert said in text
    changed = text[text.index("that are not the default") : text.index("All settings")]
    assert "train_for_env_steps" in changed
    assert "gamma" not in changed
    everything = text[text.index("All settings") :]
    assert all(name in everything for name in load(path).flags.keys() - {"experiment", "train_dir", "restart_behavior"})
    heads = ("<h2>Settings that", "<h2>Episodes", "<h2>All settings")
    assert sorted(heads, key=text.index) == [*heads]


def test_every_metric_is_drawn_with_its_values_to_hover_over(finished):
    path, text = finished
    drawn = {name for _, members in charts.sections(load(path), "env_frames") for c in members for name in c.metrics}
    assert drawn == {
        "mean_return", "mean_episode_steps", "train/entropy", "rollout/busy_share",
        "env_frames_per_second", "sampled_env_frames_per_second",
    }  # fmt: skip
    hovers = [json.loads(data) for tag, data in Page(text).text if tag == "script" and data.startswith("{")]
    returns = next(hover for hover in hovers if hover["series"][0]["y"][-1] == 9.5)  # the summary's
    assert returns["series"][0]["x"][-1] == 120_000
    left, top, width, height = returns["box"]
    assert 0 < left < left + width <= 1
    assert 0 <= top < top + height < 1


def test_a_metric_that_no_chart_knows_has_one_of_its_own(tmp_path):
    of_eval = {"eval/mean_return": 4.0, "eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    own = [record(step, 1.0, **{"stats/kills": step, "mine/x": step, "mine/zero": 0}, **of_eval) for step in (1, 2)]
    run = load(write_run(tmp_path / "a", records=own))
    found = {heading: [c.title for c in members] for heading, members in charts.sections(run, "seconds")}
    evaluations = "Return of evaluations: mean and its 95 % interval"
    assert found["Episodes"] == ["Return: mean and deviation", "Episode length", evaluations, "kills"]
    assert found["More"] == ["mine/x"]


def test_names_cannot_break_out_of_the_page_and_controls_are_written_out(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    own = {f"stats/{evil}</script>": 1.0, "stats/a\x01b": 1.0}
    records = [record(step, 1.0, **own) for step in (1, 2)]
    text = render(write_run(tmp_path / evil, env=f"module:{evil}\x1b[2Jb\x01", records=records))
    assert evil not in text
    parsed = Page(text)
    assert "img" not in parsed.tags
    assert parsed.open == []
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) == []
    assert "\\x1b[2Jb\\x01" in text
    assert "stats/a\\x01b" in text


def test_a_long_run_is_thinned_and_one_that_has_just_begun_has_a_page(tmp_path):
    path = write_run(tmp_path / "long", np.random.default_rng(0).normal(size=3000))
    returns = charts.sections(load(path), "env_frames")[0][1][0]
    assert len(returns.hover["series"][0]["x"]) == 400
    text = render(write_run(tmp_path / "a", returns=[None]))
    assert "Nothing to draw yet" in text
    assert "Not recorded" in text


@pytest.mark.parametrize(
    ("summary", "silent_s", "kind", "sentence"),
    [
        (None, 3.0, "running", "last record 3 s ago"),
        (None, 3000.0, "ended", "without a summary"),
        ({"stopped_by": "SIGINT"}, 3000.0, "stopped", "stopped by SIGINT"),
        ({"stopped_by": 2}, 3000.0, "stopped", "stopped by SIGINT"),  # as earlier versions wrote it
        ({"stopped_by": "stop_at_return"}, 3000.0, "finished", "at the return of stop_at_return"),
        ({"stopped_by": None}, 3000.0, "ended", "a process failed for good; run.log"),
        ({"stopped_by": "failure", "env_steps": 10**6}, 3000.0, "ended", "a process failed for good"),
        ({"stopped_by": None, "env_steps": 10**6}, 3000.0, "finished", "finished"),
        ({"stopped_by": None, "seconds": 5.0}, 3.0, "running", "running"),  # of an earlier part of a resumed run
    ],
)
def test_the_status_of_a_run_is_what_its_directory_tells(tmp_path, summary, silent_s, kind, sentence):
    run = load(write_run(tmp_path / "a", summary=summary, train_for_env_steps=10**6))
    run.directory.log.write_text("a traceback")
    status = facts.status(run, facts.read_summary(run), run.directory.metrics.stat().st_mtime + silent_s)
    assert status.kind == kind
    assert sentence in status.sentence


def test_a_run_that_was_resumed_a_moment_ago_is_running_before_its_first_record(tmp_path):
    path = write_run(tmp_path / "a")
    record_start(RunDir(path))
    os.utime(path / "metrics.jsonl", (1000.0, 1000.0))
    os.utime(path / "system.json", (5000.0, 5000.0))
    run = load(path)
    assert facts.status(run, None, 5010.0) == facts.Status("running", "running, started 10 s ago")
    ended = facts.status(run, None, 9000.0)
    assert ended.kind == "ended"
    assert time.strftime("last record %Y-%m-%d %H:%M", time.localtime(1000.0)) in ended.sentence


def figures_of(run, summary=None):
    return {name: (value, more) for name, value, more in facts.key_figures(run, summary)}


@pytest.mark.parametrize(
    ("records", "best", "episodes"),
    [
        (  # means over enough episodes, and the counts of all starts
            [
                record(1, 3.0, episodes=40, episodes_in_mean=10, restarts=1),
                record(2, 4.0, episodes=60, episodes_in_mean=10, restarts=2),
                record(3, 99.0, episodes=1, episodes_in_mean=1),  # resumed
                record(4, 88.0, episodes=4, episodes_in_mean=4, restarts=1, env_faults=5),
            ],
            ("4", "at 8,000 frames"),
            ("64", "3 processes replaced, 5 environments rebuilt"),
        ),
        (  # what was undone counts for nothing
            [
                record(1, 3.0, start=1, episodes=40, restarts=1),
                record(2, 4.0, start=1, episodes=60, restarts=2),
                record(3, 500.0, start=1, episodes=80, restarts=2),
                record(2, 5.0, start=2, episodes=20, restarts=1),  # resumed from the checkpoint after the first
            ],
            ("5", "at 8,000 frames"),
            ("60", "3 processes replaced"),
        ),
        (  # finished, and gone on with
            [
                record(1, 3.0, start=1, episodes=40),
                record(2, 9.0, start=1, episodes=60),
                record(2, 1.0, start=2, episodes=4),  # before its first update
                record(3, 5.0, start=2, episodes=20),
            ],
            ("9", "at 8,000 frames"),
            ("80", ""),
        ),
        (  # the second start has more than the first
            [record(k, 1.0, start=k // 3, episodes=num) for k, num in enumerate([40, 353, 500, 2192], 1)],
            ("1", "at 4,000 frames"),
            ("2,545", ""),
        ),
    ],
)
def test_the_figures_of_a_resumed_run_are_of_all_that_it_kept(tmp_path, records, best, episodes):
    run = load(write_run(tmp_path / "a", records=records, stats_avg=10))
    for summary in (None, {**records[-1], "stopped_by": 2}):
        assert figures_of(run, summary)["best return"] == best
        assert figures_of(run, summary)["episodes"] == episodes
    better = {**records[-1], "mean_return": 700.0, "episodes_in_mean": 10}
    assert figures_of(run, better)["last return"][0] == figures_of(run, better)["best return"][0] == "700"


def test_what_a_run_has_undone_is_not_drawn_over_its_seconds_either(tmp_path):
    """A start takes a while, in which the clock of the run stands beyond some of the records that it has undone."""
    records = [
        record(1, 3.0, seconds=100.0),
        record(2, 500.0, seconds=105.0),
        record(3, 500.0, seconds=150.0),
        record(1.5, 5.0, seconds=112.0),  # resumed from the checkpoint after the first
        record(3, 6.0, seconds=120.0),
    ]
    ((_, (chart, *_)), *_) = charts.sections(load(write_run(tmp_path / "a", records=records)), "seconds")
    (line,) = chart.hover["series"]
    assert line["y"] == [3.0, 5.0, 6.0]
    assert line["x"] == pytest.approx([100 / 60, 112 / 60, 120 / 60], rel=1e-4)  # minutes


@pytest.mark.parametrize(
    ("summary", "value", "over"),
    [
        (None, "2,000", "over the last minute"),
        ({"env_frames_per_second": 123.0, "steady_env_frames_per_second": 0.0}, "123", "since the last start"),
        ({"env_frames_per_second": 123.0, "steady_env_frames_per_second": 456.0}, "456", "without start-up"),
    ],
)
def test_a_rate_says_what_it_is_over(tmp_path, summary, value, over):
    run = load(write_run(tmp_path / "a", summary=summary))
    rate, more = figures_of(run, facts.read_summary(run))["frames/s"]
    assert rate == value
    assert more.startswith(over)


def test_the_rate_of_a_run_that_goes_on_is_over_many_records_as_one_may_be_between_two_iterations(tmp_path):
    frames = [(1, 0), (1, 90_000), (2, 90_000), *((2, 100_000 + 4000 * (second // 4 * 4)) for second in range(100))]
    records = [
        record(0, 1.0, start=start, env_frames=num, seconds=float(k), env_frames_per_second=16_000.0 * (k % 4 == 3))
        for k, (start, num) in enumerate(frames)
    ]
    for num_records in (100, 101, 102, 103):
        run = load(write_run(tmp_path / f"{num_records}", records=records[:num_records]))
        rate, more = figures_of(run)["frames/s"]
        assert float(rate.replace(",", "")) == pytest.approx(4000, rel=0.1)
        assert more == "over the last minute"
    run = load(write_run(tmp_path / "one", records=records[3:4]))
    assert figures_of(run)["frames/s"] == ("16,000", "in the last record")


def write_population(directory, records):
    """A run of two policies. records: what each has of its own, by its thousands of env steps."""
    lines = []
    for step, own in records:
        of_both = {f"policy_0{idx}/{name}": value for idx in (0, 1) for name, value in own.items()}
        steps = {f"policy_0{idx}/env_steps": 500 * step for idx in (0, 1)}
        lines.append(record(step, 1.0, **steps, **of_both))
    path = write_run(directory, records=lines, num_policies=2, with_pbt=True)
    PopulationRecord(path, {0: {"learning_rate": 1e-3}, 1: {"learning_rate": 1e-4}})
    return path


@pytest.mark.usefixtures("_without_charts")
def test_a_population_has_its_policies_its_lineage_and_its_events(tmp_path):
    own = {"mean_return": 1.0, "true_objective": 2.0, "stats/true_objective": 3.0, "eval/mean_return": 4.0}
    own |= {"train/entropy": 5.0, "league/rating": 6.0, "eval/exploitability": 7.0, "std_return": 1.0}
    own |= {"train/skipped_updates": 0, "eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    path = write_population(tmp_path / "a", [(step, {**own, "eval/env_steps": 400 * step}) for step in (1, 2, 3)])
    text = render(path)
    assert "lineage of the best" in text
    assert "policy 1 starts; learning_rate 0.0001" in text
    found = {chart.title: chart for chart in dict(charts.sections(load(path), "env_frames"))["Policies"]}
    titles = {
        "Return": "mean_return",
        "Objective": "true_objective",
        "stats/true_objective": "stats/true_objective",
        "Return of evaluations": "eval/mean_return",
        "Exploitability": "eval/exploitability",
        "Entropy": "train/entropy",
        "Rating": "league/rating",
    }
    assert set(found) == {f"{title} of each policy" for title in titles}
    for title, name in titles.items():
        chart = found[f"{title} of each policy"]
        assert chart.metrics == (f"policy_00/{name}", f"policy_01/{name}")
        drawn = [(series["name"], series["color"], series["y"]) for series in chart.hover["series"]]
        assert drawn == [("policy_00", 0, [own[name]] * 3), ("policy_01", 1, [own[name]] * 3)]
    assert charts._band(load(path), "env_frames", "policy_01/eval/mean_return")[2].tolist() == [5.0] * 3
    (path / "population.jsonl").write_text("")
    assert "0 events" in render(path)


@pytest.mark.parametrize(
    "records",
    [
        [(1, {"true_objective": None, "stats/true_objective": 1.0}), (2, {"true_objective": None})],
        [(5, {"true_objective": 1.0}), (1, {"true_objective": None})],  # resumed from before the first objective
    ],
)
@pytest.mark.usefixtures("_without_charts")
def test_a_young_population_has_a_page_without_a_lineage(tmp_path, records):
    text = render(write_population(tmp_path / "a", records))
    assert "lineage of the best" not in text
    assert "policy 1 starts; learning_rate 0.0001" in text


@pytest.mark.usefixtures("_without_charts")
def test_a_league_has_its_picture_and_its_players(tmp_path):
    path = write_run(tmp_path / "a", num_policies=1)
    players = [league_record.Player("random"), league_record.Player("policy_00_000000000064", 0, 64, "league/x")]
    league_record.append(path / "league.jsonl", players)
    assert "<h2>League</h2>" not in render(path)  # nobody has met anybody
    scores = [(1.0, -1.0)] * 3 + [(-1.0, 1.0)]
    names = ("random", players[1].name)
    matches = [league_record.Match(("policy_00", name), each, 1000) for name in names for each in scores]
    league_record.append(path / "league.jsonl", matches)
    text = render(path)
    assert text.count("<svg") == text.count("</svg>")
    assert "<summary>3 players</summary>" in text
    assert "<td>policy_00</td><td>8</td><td>75.0%</td>" in text
    assert "<td>random</td><td>4</td><td>25.0%</td><td>0 (held)</td>" in text
    assert "win rate against each player" in text


def write_video(path, age):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(path.name.encode())
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


@pytest.mark.usefixtures("_without_charts")
def test_the_newest_video_of_the_run_is_in_the_page(tmp_path):
    path = write_run(tmp_path / "a")
    new, old = (write_video(path / name, age) for age, name in enumerate(["new.gif", "old.mp4"]))
    write_video(path / "wandb" / "run" / "copy.mp4", -1)
    assert page.newest_videos(RunDir(path)) == [new]
    assert '<img class="video" src="data:image/gif;base64,bmV3LmdpZg=="' in render(path, videos=[page.captioned(new)])
    text = render(path, videos=[page.captioned(old)])
    assert '<video class="video" src="data:video/mp4;base64,b2xkLm1wNA=="' in text
    of_training = write_video(RunDir(path).videos_of(0, 1) / "video_000000020000.mp4", -2)
    write_video(of_training.with_name("video_000000010000.mp4"), -1)
    assert page.newest_videos(RunDir(path)) == [of_training]
    assert page.captioned(of_training)[1] == "after 20,000 env steps"


def test_a_link_to_a_video_of_somebody_else_and_an_empty_one_are_left_out(tmp_path):
    path = write_run(tmp_path / "run", num_policies=2)
    secret = write_video(tmp_path / "others" / "secret.mp4", -5)
    own = write_video(path / "own.mp4", 5)
    (path / "a.mp4").symlink_to(secret)
    (path / "empty.mp4").touch()
    assert page.newest_videos(RunDir(path)) == [own]
    of_policy = write_video(RunDir(path).videos_of(0, 2) / "video_000000000100.mp4", 0)
    RunDir(path).videos_of(1, 2).symlink_to(tmp_path / "others")
    assert page.newest_videos(RunDir(path)) == [of_policy]


def bands(tmp_path, name, of_steps):
    """The band around a metric, of records with these numbers."""
    records = [record(step, 4.0, **{"eval/env_steps": 900 * step}, **own) for step, own in enumerate(of_steps, 1)]
    _, low, high = charts._band(load(write_run(tmp_path / "a", records=records)), "env_frames", name)
    return [str(value) for value in (*low, *high)]


def test_a_band_stays_within_the_returns_and_has_a_gap_where_an_evaluation_has_no_interval(tmp_path):
    own = {"mean_return": 499.5, "std_return": 4.0, "min_return": 460.0, "max_return": 500.0}
    assert bands(tmp_path, "mean_return", [own] * 2) == ["495.5", "495.5", "500.0", "500.0"]
    whole = {"eval/mean_return": 4.0, "eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    found = bands(tmp_path, "eval/mean_return", [whole, {"eval/mean_return": 4.0}, whole])
    assert found == ["3.0", "nan", "3.0", "5.0", "nan", "5.0"]


def test_the_command_writes_the_page_into_the_run_and_says_where(tmp_path, status_of, capsys):
    path = write_run(tmp_path / "a")
    assert status_of(page.main, path) == 0
    assert capsys.readouterr().out == f"{path / 'report.html'}\n"
    assert (path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}/nowhere"], "nowhere"),
        (["{run}", "--video", "{run}/config.yaml"], "video is"),
        (["{run}", "--video", "{run}/none.mp4"], "cannot be read"),
        (["{run}", "--out", "{run}"], "cannot be written (Is a directory)"),
        (["{run}", "--out", "{run}/config.yaml"], "its name must end with .html"),
    ],
)
def test_what_cannot_be_reported_is_said_in_one_sentence(tmp_path, arguments, message, monkeypatch, capsys, status_of):
    path = write_run(tmp_path / "a")
    monkeypatch.setattr(charts, "sections", None)  # it is said before anything is drawn
    assert status_of(page.main, *(argument.format(run=path) for argument in arguments)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("_without_charts")
def test_a_link_in_the_place_of_the_page_is_not_followed_unless_it_is_named(tmp_path):
    write_run(tmp_path / "run")
    target, link = tmp_path / "precious", tmp_path / "run" / "report.html"
    target.write_text("years of work")
    link.symlink_to(target)
    with pytest.raises(ValueError, match="is a link"):
        page.report(page.ReportFlags(link.parent))
    assert target.read_text() == "years of work"
    page.report(page.ReportFlags(link.parent, out=link))
    assert link.is_symlink()
    assert "<html" in target.read_text()
