"""sf-report: one file with everything in it, true of runs in whatever state, and safe to open."""

import json
import os
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from written_runs import record, write_run

from sf.config import Config
from sf.league import record as league_record
from sf.league.population.record import PopulationRecord
from sf.metrics.system_info import record_start
from sf.storage.run_dir import RunDir
from sf.system.machine import extras
from sf.tools.report import charts, facts, page
from sf.tools.report import render as rendering
from sf.tools.report.runs import load

VOID = {"meta", "img", "br", "link", "input"}


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


def test_the_page_says_how_the_run_stands_and_what_it_reached(finished):
    text = finished[1]
    assert '<span class="badge finished">finished</span>' in text
    for said in ("120,000", "0:01:00", "best return", "train_for_env_steps", "30000"):
        assert said in text
    assert "torch" in text  # of system.json


def test_settings_that_are_not_the_default_come_first(finished):
    path, text = finished
    changed = text[text.index("that are not the default") : text.index("All settings")]
    assert "train_for_env_steps" in changed
    assert "gamma" not in changed
    everything = text[text.index("All settings") :]
    assert all(name in everything for name in load(path).flags.keys() - {"experiment", "train_dir", "restart_behavior"})


def test_every_metric_is_drawn_with_its_values_to_hover_over(finished):
    path, text = finished
    drawn = {name for _, members in charts.sections(load(path), "env_frames") for c in members for name in c.metrics}
    assert drawn == {
        "mean_return", "mean_episode_steps", "train/entropy", "rollout/busy_share",
        "env_frames_per_second", "sampled_env_frames_per_second",
    }  # fmt: skip
    hovers = [json.loads(data) for tag, data in Page(text).text if tag == "script" and data.startswith("{")]
    returns = next(hover for hover in hovers if hover["series"][0]["y"][-1] == 10.0)
    assert returns["series"][0]["x"][-1] == 120_000
    left, top, width, height = returns["box"]
    assert 0 < left < left + width <= 1
    assert 0 <= top < top + height < 1


def test_a_metric_that_no_chart_knows_has_one_of_its_own(tmp_path):
    path = write_run(tmp_path / "a")
    lines = [json.dumps(record(s, 1.0, **{"stats/kills": s, "mine/x": s, "mine/zero": 0})) for s in (1, 2)]
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    found = {heading: [c.title for c in members] for heading, members in charts.sections(load(path), "seconds")}
    assert found["Episodes"] == ["Return: mean and deviation", "Episode length", "kills"]
    assert found["More"] == ["mine/x"]


def test_colours_are_left_to_the_style_of_the_page(finished):
    drawings = finished[1][finished[1].index("<svg") :].split("<script")[0]
    assert "var(--c0)" in drawings
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []


def test_names_cannot_break_out_of_the_page(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    path = write_run(tmp_path / evil, env=f"module:{evil}")
    line = json.dumps(record(1, 1.0, **{f"stats/{evil}</script>": 1.0}))
    (path / "metrics.jsonl").write_text(line + "\n" + line.replace("4000", "8000") + "\n")
    text = render(path)
    assert evil not in text
    parsed = Page(text)
    assert "img" not in parsed.tags
    assert parsed.open == []


def test_a_long_run_is_thinned_to_what_one_sees(tmp_path):
    rng = np.random.default_rng(0)
    path = write_run(tmp_path / "long", rng.normal(size=3000))
    returns = charts.sections(load(path), "env_frames")[0][1][0]
    assert len(returns.hover["series"][0]["x"]) == 400
    assert len(render(path)) < 400_000


def test_a_run_that_has_just_begun_has_a_page(tmp_path):
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
        ({"stopped_by": "on_record"}, 3000.0, "stopped", "stopped by on_record"),
        ({"stopped_by": "stop_at_return"}, 3000.0, "finished", "at the return of stop_at_return"),
        ({"stopped_by": None}, 3000.0, "ended", "a process failed for good"),
        ({"stopped_by": "failure"}, 3000.0, "ended", "a process failed for good"),
        ({"stopped_by": "failure", "env_steps": 10**6}, 3000.0, "ended", "a process failed for good"),
        ({"stopped_by": None, "env_steps": 10**6}, 3000.0, "finished", "finished"),
        ({"stopped_by": None, "seconds": 5.0}, 3.0, "running", "running"),  # of an earlier part of a resumed run
    ],
)
def test_the_status_of_a_run_is_what_its_directory_tells(tmp_path, summary, silent_s, kind, sentence):
    run = load(write_run(tmp_path / "a", summary=summary, train_for_env_steps=10**6))
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


def test_the_page_of_a_run_that_failed_names_its_log(tmp_path):
    run = load(write_run(tmp_path / "a", summary={"stopped_by": None}, train_for_env_steps=10**6))
    run.directory.log.write_text("a traceback")
    assert "run.log" in facts.status(run, facts.read_summary(run), 0.0).sentence


def test_the_best_return_may_be_that_of_the_summary(tmp_path):
    run = load(write_run(tmp_path / "a", returns=[3.0, 1.0], summary={"stopped_by": 15, "mean_return": 7.0}))
    figures = {name: value for name, value, _ in facts.key_figures(run, facts.read_summary(run))}
    assert (figures["last return"], figures["best return"]) == ("7", "7")


def test_the_figures_of_a_resumed_run_are_of_all_its_starts_and_of_means_over_enough_episodes(tmp_path):
    path = write_run(tmp_path / "a", stats_avg=10)
    records = [
        record(1, 3.0, episodes=40, episodes_in_mean=10, restarts=1),
        record(2, 4.0, episodes=60, episodes_in_mean=10, restarts=2),
        record(3, 99.0, episodes=1, episodes_in_mean=1),  # resumed
        record(4, 88.0, episodes=4, episodes_in_mean=4, restarts=1, env_faults=5),
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    run = load(path)
    for summary in (None, {**records[-1], "stopped_by": 2}):
        figures = {name: (value, more) for name, value, more in facts.key_figures(run, summary)}
        assert figures["frames"][0] == "16,000"
        assert figures["episodes"] == ("64", "3 processes replaced, 5 environments rebuilt")
        assert (figures["last return"][0], figures["best return"][0]) == ("4", "4")


def test_what_a_run_has_undone_counts_for_no_figure(tmp_path):
    path = write_run(tmp_path / "a")
    records = [
        record(1, 3.0, start=1, episodes=40, restarts=1),
        record(2, 4.0, start=1, episodes=60, restarts=2),
        record(3, 500.0, start=1, episodes=80, restarts=2),
        record(2, 5.0, start=2, episodes=20, restarts=1),  # resumed from the checkpoint after the first
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    figures = {name: (value, more) for name, value, more in facts.key_figures(load(path), None)}
    assert figures["best return"] == ("5", "at 8,000 frames")
    assert figures["episodes"] == ("60", "3 processes replaced")


def test_what_a_run_has_undone_is_not_drawn_over_its_seconds_either(tmp_path):
    """A start takes a while, in which the clock of the run stands beyond some of the records that it has undone."""
    path = write_run(tmp_path / "a")
    records = [
        record(1, 3.0, seconds=100.0),
        record(2, 500.0, seconds=105.0),
        record(3, 500.0, seconds=150.0),
        record(1.5, 5.0, seconds=112.0),  # resumed from the checkpoint after the first
        record(3, 6.0, seconds=120.0),
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    ((_, (chart, *_)), *_) = charts.sections(load(path), "seconds")
    (line,) = chart.hover["series"]
    assert line["y"] == [3.0, 5.0, 6.0]
    assert line["x"] == pytest.approx([100 / 60, 112 / 60, 120 / 60], rel=1e-4)  # minutes


def test_a_run_that_was_finished_and_goes_on_has_lost_nothing(tmp_path):
    path = write_run(tmp_path / "a")
    records = [
        record(1, 3.0, start=1, episodes=40),
        record(2, 9.0, start=1, episodes=60),
        record(2, 1.0, start=2, episodes=4),  # before its first update
        record(3, 5.0, start=2, episodes=20),
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    figures = {name: (value, more) for name, value, more in facts.key_figures(load(path), None)}
    assert figures["best return"] == ("9", "at 8,000 frames")
    assert figures["episodes"][0] == "80"


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
    figures = {name: (value, more) for name, value, more in facts.key_figures(run, facts.read_summary(run))}
    assert figures["frames/s"][0] == value
    assert figures["frames/s"][1].startswith(over)


def test_the_rate_of_a_run_that_goes_on_is_over_many_records_as_one_may_be_between_two_iterations(tmp_path):
    path = write_run(tmp_path / "a")
    frames = [(1, 0), (1, 90_000), (2, 90_000), *((2, 100_000 + 4000 * (second // 4 * 4)) for second in range(100))]
    records = [
        record(0, 1.0, start=start, env_frames=num, seconds=float(k), env_frames_per_second=16_000.0 * (k % 4 == 3))
        for k, (start, num) in enumerate(frames)
    ]
    for num_records in (100, 101, 102, 103):
        (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records[:num_records]))
        figures = {name: (value, more) for name, value, more in facts.key_figures(load(path), None)}
        assert float(figures["frames/s"][0].replace(",", "")) == pytest.approx(4000, rel=0.1)
        assert figures["frames/s"][1] == "over the last minute"
    (path / "metrics.jsonl").write_text(json.dumps(records[3]) + "\n")
    figures = {name: (value, more) for name, value, more in facts.key_figures(load(path), None)}
    assert figures["frames/s"] == ("16,000", "in the last record")


def test_a_setting_that_differs_beyond_six_digits_is_not_the_default(tmp_path):
    default = Config().learner.gamma
    run = load(write_run(tmp_path / "a", gamma=default + 1e-9))
    (gamma,) = [each for part in facts.settings(run).values() for each in part if each.name == "gamma"]
    assert gamma.is_changed
    assert gamma.value != gamma.default == f"{default}"


def test_a_start_counts_from_0_also_where_it_has_more_than_the_one_before(tmp_path):
    path = write_run(tmp_path / "a")
    counts = [(1, 40), (1, 353), (2, 500), (2, 2192)]
    records = [record(k, 1.0, start=start, episodes=num) for k, (start, num) in enumerate(counts, 1)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    assert facts.over_all_starts(load(path).records, "episodes") == 353 + 2192


def write_population(directory, records):
    """A run of two policies. records: what each has of its own, by its thousands of env steps."""
    path = write_run(directory, num_policies=2, with_pbt=True)
    PopulationRecord(path, {0: {"learning_rate": 1e-3}, 1: {"learning_rate": 1e-4}})
    lines = []
    for step, own in records:
        of_both = {f"policy_0{idx}/{name}": value for idx in (0, 1) for name, value in own.items()}
        steps = {f"policy_0{idx}/env_steps": 500 * step for idx in (0, 1)}
        lines.append(json.dumps(record(step, 1.0, **steps, **of_both)) + "\n")
    (path / "metrics.jsonl").write_text("".join(lines))
    return path


def test_a_population_has_its_policies_its_lineage_and_its_events(tmp_path):
    own = {"mean_return": 1.0, "true_objective": 2.0, "stats/true_objective": 3.0, "eval/mean_return": 4.0}
    own |= {"train/entropy": 5.0, "league/rating": 6.0, "eval/exploitability": 7.0, "std_return": 1.0}
    own |= {"train/skipped_updates": 0}
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
        value = own[name]
        chart = found[f"{title} of each policy"]
        assert chart.metrics == (f"policy_00/{name}", f"policy_01/{name}")
        drawn = [(series["name"], series["color"], series["y"]) for series in chart.hover["series"]]
        assert drawn == [("policy_00", 0, [value] * 3), ("policy_01", 1, [value] * 3)]


def test_a_policy_beyond_the_colours_is_dashed_in_the_legend_as_in_the_drawing(tmp_path):
    path = write_run(tmp_path / "a", num_policies=9)
    returns = {f"policy_{idx:02d}/mean_return": float(idx) for idx in range(9)}
    lines = [json.dumps(record(step, 1.0, **returns)) + "\n" for step in (1, 2)]
    (path / "metrics.jsonl").write_text("".join(lines))
    (chart,) = dict(charts.sections(load(path), "env_frames"))["Policies"]
    styles = [(series["color"], series["dash"]) for series in chart.hover["series"]]
    assert styles == [*((color, 0) for color in range(7)), (0, 1), (1, 1)]
    assert '<i class="c0 d0"></i>policy_00' in render(path)
    assert '<i class="c0 d1"></i>policy_07' in render(path)


def test_each_policy_has_the_interval_of_its_evaluations(tmp_path):
    own = {"eval/mean_return": 4.0, "eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    path = write_population(tmp_path / "a", [(step, {**own, "eval/env_steps": 400 * step}) for step in (1, 2, 3)])
    assert charts._band(load(path), "env_frames", "policy_01/eval/mean_return").high.tolist() == [5.0] * 3


@pytest.mark.parametrize(
    "records",
    [
        [(1, {}), (2, {})],
        [(1, {"true_objective": None, "stats/true_objective": 1.0}), (2, {"true_objective": None})],
        [(5, {"true_objective": 1.0}), (1, {"true_objective": None})],  # resumed from before the first objective
    ],
)
def test_a_young_population_has_a_page_without_a_lineage(tmp_path, records):
    text = render(write_population(tmp_path / "a", records))
    assert "lineage of the best" not in text
    assert "policy 1 starts; learning_rate 0.0001" in text


def test_a_population_without_an_event_yet_has_a_page(tmp_path):
    path = write_population(tmp_path / "a", [(1, {"true_objective": 1.0}), (2, {"true_objective": 1.0})])
    (path / "population.jsonl").write_text("")
    assert "0 events" in render(path)


def test_a_league_has_its_picture_and_its_players(tmp_path):
    path = write_run(tmp_path / "a", num_policies=1)
    assert "<h2>League</h2>" not in render(path)
    players = [league_record.Player("random"), league_record.Player("policy_00_000000000064", 0, 64, "league/x")]
    league_record.append(path / "league.jsonl", players)
    assert "<h2>League</h2>" not in render(path)  # nobody has met anybody
    scores = [(1.0, -1.0)] * 3 + [(-1.0, 1.0)]
    league_record.append(
        path / "league.jsonl",
        [
            league_record.Match(("policy_00", name), each, 1000)
            for name in ("random", players[1].name)
            for each in scores
        ],
    )
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


def test_the_newest_video_of_the_run_is_in_the_page(tmp_path):
    path = write_run(tmp_path / "a")
    new, old = (write_video(path / name, age) for age, name in enumerate(["new.gif", "old.mp4"]))
    write_video(path / "wandb" / "run" / "copy.mp4", -1)
    assert page.newest_videos(RunDir(path)) == [new]
    text = render(path, videos=[page.captioned(new)])
    assert '<img class="video" src="data:image/gif;base64,bmV3LmdpZg=="' in text
    text = render(path, videos=[page.captioned(old)])
    assert '<video class="video" src="data:video/mp4;base64,b2xkLm1wNA=="' in text


def test_a_link_to_a_video_of_somebody_else_and_an_empty_one_are_left_out(tmp_path):
    path = write_run(tmp_path / "run", num_policies=2)
    secret = write_video(tmp_path / "secret.mp4", -5)
    own = write_video(path / "own.mp4", 5)
    (path / "a.mp4").symlink_to(secret)
    (path / "empty.mp4").touch()
    assert page.newest_videos(RunDir(path)) == [own]
    own.unlink()
    assert page.newest_videos(RunDir(path)) == []
    (tmp_path / "others").mkdir()
    write_video(tmp_path / "others" / "b.mp4", -5)
    of_policy = write_video(RunDir(path).videos_of(0, 2) / "video_000000000100.mp4", 0)
    RunDir(path).videos_of(1, 2).symlink_to(tmp_path / "others")
    assert page.newest_videos(RunDir(path)) == [of_policy]


def test_controls_in_names_are_written_out(tmp_path):
    path = write_run(tmp_path / "a", env="module:a\x1b[2Jb\x01")
    lines = [json.dumps(record(step, 1.0, **{"stats/a\x01b": 1.0})) + "\n" for step in (1, 2)]
    (path / "metrics.jsonl").write_text("".join(lines))
    text = render(path)
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) == []
    assert "a\\x1b[2Jb\\x01" in text
    assert "stats/a\\x01b" in text


def test_a_video_that_training_made_says_after_how_many_env_steps(tmp_path):
    path = write_run(tmp_path / "a")
    newest = write_video(RunDir(path).videos_of(0, 1) / "video_000000020000.mp4", 0)
    write_video(newest.with_name("video_000000010000.mp4"), 1)
    assert page.newest_videos(RunDir(path)) == [newest]
    assert "<figcaption>after 20,000 env steps</figcaption>" in render(path, videos=[page.captioned(newest)])


def test_of_several_policies_the_newest_video_of_each_is_in_the_page(tmp_path):
    path = write_run(tmp_path / "a", num_policies=2)
    for policy_id in range(2):
        for env_steps in (100, 200):
            write_video(RunDir(path).videos_of(policy_id, 2) / f"video_{env_steps:012d}.mp4", -env_steps)
    videos = page.newest_videos(RunDir(path))
    assert [page.captioned(video)[1] for video in videos] == [
        "policy_00, after 200 env steps",
        "policy_01, after 200 env steps",
    ]


def test_the_video_and_what_was_set_come_before_the_charts(finished):
    path = finished[0]
    text = render(path, videos=[("data:video/mp4;base64,", "a video")])
    places = [text.index(what) for what in ("<h2>Video", "<h2>Settings that", "<h2>Episodes", "<h2>All settings")]
    assert places == sorted(places)


def test_the_band_around_the_return_stays_within_the_returns(tmp_path):
    path = write_run(tmp_path / "a", returns=[499.5] * 3)
    records = [record(step, 499.5, std_return=4.0, min_return=460.0, max_return=500.0) for step in (1, 2, 3)]
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    band = charts._band(load(path), "env_frames", "mean_return")
    assert band.high.tolist() == [500.0] * 3
    assert band.low.tolist() == [495.5] * 3


def test_evaluations_are_one_chart_with_their_interval(tmp_path):
    path = write_run(tmp_path / "a")
    evaluated = {"eval/mean_return": 4.0, "eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    records = [record(step, 1.0, **evaluated, **{"eval/env_steps": 900 * step}) for step in (1, 2, 3)]
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    drawn = [chart for _, of_heading in charts.sections(load(path), "env_frames") for chart in of_heading]
    assert [chart.metrics for chart in drawn if chart.metrics[0].startswith("eval/")] == [("eval/mean_return",)]
    assert charts._band(load(path), "env_frames", "eval/mean_return").high.tolist() == [5.0] * 3


def test_an_evaluation_without_an_interval_is_a_gap_in_the_band(tmp_path):
    path = write_run(tmp_path / "a")
    interval = {"eval/mean_return_low": 3.0, "eval/mean_return_high": 5.0}
    records = [
        record(step, 1.0, **{"eval/mean_return": 4.0, "eval/env_steps": 900 * step}, **(interval if step != 2 else {}))
        for step in (1, 2, 3)
    ]
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    band = charts._band(load(path), "env_frames", "eval/mean_return")
    assert [str(value) for value in (*band.low, *band.high)] == ["3.0", "nan", "3.0", "5.0", "nan", "5.0"]


def test_explained_variance_of_an_earlier_version_does_not_squash_its_chart(tmp_path):
    path = write_run(tmp_path / "a")
    records = [record(step, 1.0, **{"train/explained_variance": value}) for step, value in ((1, 0.5), (2, -8.0))]
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    drawn = [chart for _, of_heading in charts.sections(load(path), "env_frames") for chart in of_heading]
    (chart,) = [chart for chart in drawn if chart.metrics == ("train/explained_variance",)]
    assert "barely vary" in chart.note
    ticks = re.findall(r">\N{MINUS SIGN}([\d.]+)</text>", str(chart.svg))
    assert max(map(float, ticks)) == 1.0


def test_an_explained_variance_that_is_always_below_the_floor_of_its_chart_is_not_drawn_upside_down(tmp_path):
    path = write_run(tmp_path / "a")
    records = [record(step, 1.0, **{"train/explained_variance": value}) for step, value in ((1, -7.0), (2, -2.0))]
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    drawn = [chart for _, of_heading in charts.sections(load(path), "env_frames") for chart in of_heading]
    (chart,) = [chart for chart in drawn if chart.metrics == ("train/explained_variance",)]
    ticks = re.findall(r' y="([\d.]+)"[^>]*>\N{MINUS SIGN}([\d.]+)</text>', str(chart.svg))
    (upper, first), *_, (lower, last) = sorted((float(y), float(below_0)) for y, below_0 in ticks)
    assert upper < lower
    assert first < last


def test_the_command_writes_the_page_into_the_run_and_says_where(tmp_path, monkeypatch, capsys):
    path = write_run(tmp_path / "a")
    monkeypatch.setattr("sys.argv", ["sf-report", str(path)])
    page.main()
    assert capsys.readouterr().out == f"{path / 'report.html'}\n"
    assert (path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{run}/nowhere"], "is no run"),
        (["{run}", "--video", "{run}/config.yaml"], "it must be one of .mp4, .webm, .gif"),
        (["{run}", "--video", "{run}/none.mp4"], "cannot be read"),
        (["{run}", "--out", "{run}/config.yaml/a.html"], "cannot be written"),
        (["{run}", "--out", "{run}"], "cannot be written (Is a directory)"),
        (["{run}", "--out", "{run}/" + 300 * "a"], "cannot be written (File name too long)"),
        (["{run}", "--out", "{run}/config.yaml"], "its name must end with .html"),
    ],
)
def test_what_cannot_be_reported_is_said_in_one_sentence(tmp_path, arguments, sentence, monkeypatch, capsys):
    path = write_run(tmp_path / "a")
    monkeypatch.setattr(charts, "sections", None)  # it is said before anything is drawn
    monkeypatch.setattr("sys.argv", ["sf-report", *(argument.format(run=path) for argument in arguments)])
    with pytest.raises(SystemExit) as end:
        page.main()
    assert end.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


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


def test_without_the_extra_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["sf-report", str(write_run(tmp_path / "a"))])
    with pytest.raises(SystemExit) as end:
        page.main()
    assert end.value.code == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err
