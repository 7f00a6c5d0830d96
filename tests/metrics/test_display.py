"""What a person sees: the panel at any width, and plain lines where there is no terminal."""

import io
import math
import os
import sys
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.cells import cell_len
from rich.console import Console

from sf.metrics.bottleneck import Load
from sf.metrics.display.console import OutputConsole
from sf.metrics.display.live import Display
from sf.metrics.display.panel import Curve, Target, sparkline
from sf.metrics.policy_progress import PolicyEvent
from sf.metrics.progress import Outlook


@pytest.fixture(autouse=True)
def _drawing_terminal(monkeypatch):
    """One that can draw, wherever the tests run."""
    monkeypatch.setenv("TERM", "xterm-256color")


RECORD = {
    "env_steps": 300_000,
    "env_frames": 1_200_000,
    "seconds": 754.0,
    "env_frames_per_second": 8246.3,
    "sampled_env_frames_per_second": 8303.1,
    "episodes": 1234,
    "restarts": 0,
    "lost_episodes": 0,
    "lost_frames": 0,
    "env_faults": 0,
    "mean_return": 75.25,
    "mean_episode_steps": 310.5,
    "stats/true_objective": 12.5,
    "league/players": 3,
    "league/rating": 120.4,
    "league/win_rate": 0.62,
    "league/worst_win_rate": 0.41,
    "train/lag_mean": 3.21,
    "train/lag_max": 7.0,
    "train/loss": 0.1234,
    "train/policy_loss": -0.0012,
    "train/value_loss": 0.34,
    "train/entropy": 1.234,
    "train/approx_kl": 0.00812,
    "train/learning_rate": 1e-4,
}
LOAD = Load(
    rollout_busy=0.57,
    rollout_wait=1.0,
    slot_wait=1.0,
    policy_busy=0.41,
    policy_wait=0.59,
    learner_busy=1.0,
    learner_wait=0.03,
    actions_per_batch=24.0,
    cores_in_use=0.5,
    cores={"rollout": 32.5, "policy": 0.3, "learner": 1.1},
    num_cores=64,
)
OUTLOOK = Outlook(
    load=LOAD,
    frames_per_second=5000.0,
    sampled_frames_per_second=5100.4,
    checkpoint=("/runs/doom/checkpoints/checkpoint_000012_000000300000.safetensors", 42.0),
    last_events=(None,),
)
TARGET = Target(frames=3_000_000)


def population():
    objectives = {0: 1.5, 1: None, 2: 7.25}
    record = dict(RECORD)
    for policy_id, objective in objectives.items():
        of_policy = {
            "true_objective": objective,
            "mean_return": -1234.5,
            "env_steps": 2_340_000_000,
            "train/learning_rate": 1.2345e-5,
            "learner/busy_share": 0.97,
        }
        record |= {f"policy_{policy_id:02d}/{name}": value for name, value in of_policy.items()}
    events = (PolicyEvent("copied 2", 1_500_000), None, PolicyEvent("mutated", 900))
    return record, Outlook(LOAD, last_events=events)


def terminal(width, **options):
    return Console(file=io.StringIO(), width=width, height=40, force_terminal=True, color_system=None, **options)


def shown(console, record=RECORD, outlook=OUTLOOK, target=TARGET):
    """The lines of the last panel."""
    with Display("doom_basic in runs/doom", target, console) as display:
        display.show(record, outlook)
        console.file.truncate(0)
        display.show(record, outlook)
        text = console.file.getvalue()
    return text[text.index("╭") :].splitlines()


CASES = [(60, "one policy"), (80, "one policy"), (80, "population"), (200, "population")]


@pytest.mark.parametrize(("width", "case"), CASES)
def test_the_panel_is_a_whole_box_at_any_width(width, case):
    lines = shown(terminal(width)) if case == "one policy" else shown(terminal(width), *population())
    assert {cell_len(line) for line in lines} == {min(width, 110)}
    assert not any("…" in line for line in lines)


def test_the_panel_has_every_figure_that_matters():
    text = " ".join(" ".join(line.strip("│ ").split()) for line in shown(terminal(80)))
    for words in (
        "40 %, 0:12:34 elapsed, 0:06:00 left",
        "1,200,000 of 3,000,000",
        "5,000 trained, 5,100 sampled",
        "75.25 mean, 75.25 best",
        "objective 12.50",
        "3 players, rating 120, 62 % won against them, 41 % against",
        "1,234, 310.5 steps",
        "3.21 mean, 7.00 max",
        "loss 0.123 policy -0.0012 value 0.34 entropy 1.23 KL 0.00812 lr 0.0001",
        "0:00:42 ago, checkpoints/checkpoint_000012_000000300000.safetensors",
        "57 % busy",
        "32.5 cores",
        OUTLOOK.bottleneck,
    ):
        assert words in text
    assert "faults" not in text
    lines = shown(terminal(80), {**RECORD, "restarts": 2, "lost_frames": 1024})
    assert any("processes replaced 2, frames lost 1,024" in line for line in lines)


def test_the_policies_of_a_population_are_ranked_and_names_are_shown_as_they_are():
    record, outlook = population()
    table = [line.strip("│ ").split() for line in shown(terminal(80), record, outlook)[-5:-1]]
    assert table[0] == ["policy", "objective", "return", "steps", "lr", "busy", "last", "event"]
    assert [row[0] for row in table[1:]] == ["2", "0", "1"]
    assert table[2][1:] == ["1.50", "-1,234.50", "2340.0M", "1.23e-05", "97", "%", "copied", "2", "at", "1.5M"]
    events = (PolicyEvent("copied [/2]", 1_500_000), *outlook.last_events[1:])
    outlook = replace(outlook, checkpoint=("/runs/policy[red]/saved[x].pt", 1.0), last_events=events)
    text = "\n".join(shown(terminal(100), record, outlook))
    assert "policy[red]/saved[x].pt" in text
    assert "copied [/2] at" in text


def test_a_run_without_an_end_or_a_figure_has_a_panel_too():
    record = {**RECORD, "mean_return": None, "mean_episode_steps": None}
    record = {name: value for name, value in record.items() if not name.startswith(("train/", "stats/"))}
    text = "\n".join(shown(terminal(80), record, Outlook(None, last_events=(None,)), Target()))
    assert "- left" in text
    assert "- mean, - best" in text
    assert "starting" in text


def test_a_terminal_that_was_resized_is_drawn_anew_with_what_was_said():
    console = terminal(120)
    with Display("run", TARGET, console) as display:
        display.show({**RECORD, "mean_return": 99.0}, replace(OUTLOOK, has_enough_episodes=False))
        console.file.truncate(0)
        display.say("learner-0: saved [bold]x")
        said = console.file.getvalue()
        display.show(RECORD, OUTLOOK)
        console.width = 80
        console.file.truncate(0)
        display.show(RECORD, OUTLOOK)
        text = console.file.getvalue()
    assert said.index("learner-0: saved [bold]x") < said.index("╭")
    assert text.index("\x1b[2J") < text.index("learner-0: saved [bold]x") < text.rindex("╭")
    assert "75.25 mean, 75.25 best" in text  # of means over enough episodes


@pytest.mark.parametrize("console", [{}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_a_record_is_one_plain_line_where_there_is_no_terminal(console):
    file = io.StringIO()
    with Display("run", TARGET, Console(file=file, width=40, **console)) as display:
        display.show(RECORD, OUTLOOK)
    lines = file.getvalue().splitlines()
    assert lines == [
        "0:12:34 frames 1,200,000 fps 5,000 return 75.25 episode 310.50 steps lag 3.21 eta 0:06:00 bottleneck "
        + OUTLOOK.bottleneck
    ]


def test_a_notebook_has_one_area_that_each_record_replaces(monkeypatch):
    drawn = []

    def display(content, raw, display_id):
        drawn.append(content)
        return SimpleNamespace(update=lambda content, raw: drawn.append(content))

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    file = io.StringIO()
    with Display("run <x>", TARGET, Console(file=file, force_jupyter=True)) as shown:
        shown.say("policy-0 was <b>replaced")
        shown.show(RECORD, OUTLOOK)
        shown.show({**RECORD, "mean_return": 80.5}, OUTLOOK)
    assert file.getvalue() == ""
    assert len(drawn) == 3
    plain, html = drawn[-1]["text/plain"], drawn[-1]["text/html"]
    assert plain.index("policy-0 was <b>replaced") < plain.index("80.50 mean, 80.50 best")
    assert plain.count("╭") == 1
    assert "75.25" not in plain
    assert "\x1b" not in plain
    assert "&lt;b&gt;replaced" in html
    assert "<b>" not in html


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        (Target(), None),
        (Target(frames=1_205_000), 1.0),
        (Target(seconds=760.0), 6.0),
        (Target(3_000_000, 760.0), 6.0),
        (Target(1_000_000), 0),
    ],
)
def test_the_time_left_is_that_of_whatever_ends_the_run_first(target, seconds):
    assert target.seconds_left(RECORD, OUTLOOK) == seconds
    assert Target(frames=10).seconds_left({**RECORD, "env_frames": 0}, Outlook(None)) is None


def test_a_curve_keeps_its_shape_and_its_best_however_long_a_run_is():
    curve = Curve()
    for idx in range(20_000):
        curve.add(math.sin(idx / 20_000 * math.pi))
        curve.add(None)
    for value in (math.nan, math.inf, -math.inf, 3.0):
        curve.add(value)
    assert curve.best == 3.0
    assert len(curve.points) < 512
    line = sparkline(curve.points)
    assert list(line) == [*sorted(line[:12]), *sorted(line[12:], reverse=True)]
    assert (line[0], line[12]) == ("▁", "█")
    assert [sparkline(values) for values in ([], [2.0, 2.0], [0.0, 1.0, 7.0])] == ["", "▁▁", "▁▂█"]


def test_characters_that_the_output_lacks_are_written_out():
    bytes_out = io.BytesIO()
    file = io.TextIOWrapper(bytes_out, encoding="latin-1")
    with Display("run", TARGET, OutputConsole(file=file)) as display:
        display.say("saved td_漢")
        display.say("saved td_é")
    assert bytes_out.getvalue().decode("latin-1") == "saved td_\\u6f22\nsaved td_é\n"
    OutputConsole(file=file).say("started 漢")
    assert bytes_out.getvalue().endswith(b"started \\u6f22\n")


def test_a_console_without_a_reader_says_so_once_and_a_display_drops_what_it_shows():
    reader, writer = os.pipe()
    os.close(reader)
    file = os.fdopen(writer, "w")
    console = OutputConsole(file=file)
    with pytest.raises(BrokenPipeError):
        console.print("a table")
    console.print("another")
    console.say("a line")
    with Display("run", TARGET, OutputConsole(file=file)) as display:
        for _ in range(3):
            display.say("policy-0 was replaced")
            display.show(RECORD, OUTLOOK)
    with suppress(BrokenPipeError):  # it is flushed when it is closed
        file.close()


def test_a_message_of_a_thread_is_shown_while_a_process_is_started(capsys):
    with Display("run", TARGET) as display, redirect_stdout(None):
        display.say("wandb: https://wandb.example/run")
    assert "wandb.example" in capsys.readouterr().out
