"""The campaign for a machine with a GPU: a step of it, as small as it can be, and what leads through them all."""

import json
import sys
from types import SimpleNamespace

import gpu_campaign
import numpy as np
import pytest
import warm
from gpu import running
from gpu.step import Context, Step
from gpu.training import Trained
from gpu_campaign import STEPS
from pages import ROOT
from process_session import Ran

CAMPAIGN = ROOT / "scripts" / "gpu_campaign.py"


def campaign(*words):
    return warm.run([sys.executable, CAMPAIGN, *words], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
def test_a_step_writes_what_it_found_and_is_not_done_twice(tmp_path):
    words = ["--rehearse", "--out", str(tmp_path / "out"), "--steps", "weights"]
    first = campaign(*words)
    assert first.returncode == 0, first.stdout + first.stderr
    result = json.loads((tmp_path / "out" / "weights.json").read_text())
    assert (result["is_ok"], result["is_finished"], result["data"]["wrong"]) == (True, True, [])
    assert 50 in result["data"]["compared"]
    assert "0 wrong" in (tmp_path / "out" / "weights.txt").read_text()
    second = campaign(*words)
    assert "weights read are the weights published ..." in first.stdout
    assert "weights read are the weights published ..." not in second.stdout
    assert "| weights" in second.stdout
    assert second.returncode == 0


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path, "cpu", is_rehearsal=False)


def test_a_step_that_raises_has_that_for_its_result(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "broken", SimpleNamespace(step=lambda context: 1 / 0))
    step = Step("broken", "broken:step", "breaks")
    gpu_campaign.perform(step, Context(tmp_path / step.name, "cpu", is_rehearsal=True))
    result = json.loads((tmp_path / "broken.json").read_text())
    assert (result["is_ok"], result["lines"]) == (False, ["ZeroDivisionError: division by zero"])


def test_a_step_whose_process_dies_is_told_and_the_next_one_is_done(tmp_path, monkeypatch, capsys):
    def die(command, log, seconds):
        log.write_text("...\nSegmentation fault\n")
        return Ran(0.0, 1.0, 0)

    monkeypatch.setattr(gpu_campaign, "run_bounded", die)
    monkeypatch.setattr(sys, "argv", ["gpu_campaign.py", "--out", str(tmp_path), "--steps", "check", "runs"])
    with pytest.raises(SystemExit) as end:
        gpu_campaign.main()
    assert end.value.code == 1
    done = gpu_campaign.results(tmp_path)
    assert list(done) == ["check", "runs"]
    assert done["check"]["lines"][0] == "no result: its process died"
    assert "Segmentation fault" in capsys.readouterr().out
    assert not gpu_campaign.is_finished(tmp_path, STEPS[0])  # the next call tries again


def trained(records, status=0, seconds=100.0):
    summary = {
        "env_frames": 400, "env_steps": 100, "seconds": seconds, "steady_env_frames_per_second": 4.0,
        "rollout/busy_share": 0.9, "policy/busy_share": 0.5, "learner/busy_share": 0.25,
    }  # fmt: skip
    gpu = {"gpu_busy": None, "gpu_mib": None}
    return Trained(status, summary, [{"env_frames": 4, **record} for record in records], gpu, "")


@pytest.mark.parametrize(
    ("returns", "episodes", "seconds", "is_ok", "is_finished", "said"),
    [
        ([-20.0, 18.5], 100, 100.0, True, True, "18 after 20 s"),
        ([-20.0, 18.5], 99, 100.0, False, False, "not 18 yet"),
        ([-20.0, 3.0], 100, 100.0, False, False, "not 18 yet"),
        ([-20.0, 3.0], 100, 900.0, False, True, "18 not reached"),
    ],
)
def test_a_score_is_reached_or_goes_on_or_is_given_up(
    returns, episodes, seconds, is_ok, is_finished, said, context, monkeypatch
):
    records = [
        {"seconds": 10.0 * (i + 1), "mean_return": value, "episodes_in_mean": episodes}
        for i, value in enumerate(returns)
    ]
    told = []
    monkeypatch.setattr(
        running, "train", lambda context, name, end, flags: told.append(end) or trained(records, seconds=seconds)
    )
    (context.folder / "run").mkdir()
    (context.folder / "run" / "metrics.jsonl").write_text('{"seconds": 300.0}\n')
    findings = running.pong(context)
    assert (findings.is_ok, findings.is_finished) == (is_ok, is_finished)
    assert said in findings.lines[0]
    assert told == [750.0]  # of the run, with the piece before


def with_noise(means, stds, episodes=100):
    return [
        {"mean_return": mean, "std_return": std, "episodes_in_mean": episodes}
        for mean, std in zip(means, stds, strict=True)
    ]


def of_episodes(returns, every):
    """The records of a run with these episodes, one each `every` of them."""
    latest = [returns[max(0, end - 100) : end] for end in range(every, len(returns) + 1, every)]
    return [{"mean_return": each.mean(), "std_return": each.std(), "episodes_in_mean": len(each)} for each in latest]


def test_runs_whose_returns_do_not_rise_are_named(context, monkeypatch):
    run = trained(with_noise([5.0, 6.0, 4.0, 5.5], [4.0] * 4))  # the greatest is not the first
    monkeypatch.setattr(running, "train", lambda *_: run)
    findings = running.runs(context)
    assert not findings.is_ok
    assert [line.split(":")[0] for line in findings.lines if "DO NOT RISE" in line] == list(running._SHOULD_RISE)
    risen = trained(with_noise([5.0, 6.0, 8.0, 9.0], [4.0] * 4))
    monkeypatch.setattr(running, "train", lambda *_: risen)
    assert running.runs(context).is_ok


@pytest.mark.parametrize("every", [20, 500])
def test_returns_of_a_policy_that_does_not_learn_have_not_risen(every):
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert not running.has_risen(of_episodes(rng.geometric(1 / 22, size=20 * every), every))
        assert not running.has_risen(of_episodes(rng.integers(0, 2, size=20 * every), every))
        falling = rng.exponential(np.linspace(22.0, 11.0, 20 * every))
        assert not running.has_risen(of_episodes(falling, every))


def test_means_over_few_episodes_are_no_beginning_of_a_rise():
    """Of Doom the episodes that succeed finish first."""
    early = [{"mean_return": None, "episodes_in_mean": 0}, *with_noise([60.0], [42.0], episodes=15)]
    assert running.has_risen([*early, *with_noise([-160.0, -150.0, 70.0, 80.0], [190.0, 190.0, 40.0, 20.0])])
    assert not running.has_risen([*with_noise([-160.0], [190.0], episodes=15), *with_noise([80.0] * 3, [20.0] * 3)])
    assert not running.has_risen(early)
