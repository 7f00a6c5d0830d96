"""What a fault campaign holds a run to: its files and its counts."""

from types import SimpleNamespace

import pytest
from faults import bookkeeping
from faults.bookkeeping import NotRecoveredError

from sf.storage.run_dir import RunDir

ITERATION = 64  # samples


@pytest.fixture
def plan():
    config = SimpleNamespace(rollout=8, slots_per_iteration=ITERATION // 8)
    return SimpleNamespace(config=config, num_actors=4, num_slots=4, num_policies=1)


@pytest.mark.parametrize("line", ['{"mean_return": NaN}', '{"loss": -Infinity}', '{"env_steps": 1'])
def test_a_record_that_is_not_strict_json_is_found(tmp_path, line):
    run_dir = RunDir(tmp_path)
    run_dir.metrics.write_text('{"env_steps": 1}\n')
    bookkeeping.require_files_in_order(run_dir)
    run_dir.metrics.write_text(f'{{"env_steps": 1}}\n{line}\n')
    with pytest.raises(NotRecoveredError, match="JSON"):
        bookkeeping.require_files_in_order(run_dir)


def test_a_line_that_is_just_being_written_is_not_read_yet(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.metrics.write_text('{"env_steps": 1}\n{"env_st')
    bookkeeping.require_files_in_order(run_dir)
    assert bookkeeping.whole_lines(run_dir.metrics) == ['{"env_steps": 1}']


def test_a_checkpoint_that_is_not_whole_is_found(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.checkpoints.mkdir()
    (run_dir.checkpoints / "checkpoint_000001_000000000064.safetensors").write_bytes(b"a part")
    with pytest.raises(NotRecoveredError, match="not whole"):
        bookkeeping.require_files_in_order(run_dir)


SNAPSHOT = '{"kind": "player", "name": "a", "policy": 1}'
ANEW = '{"kind": "anew", "policy": 1, "env_steps": 5}'


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [([SNAPSHOT, SNAPSHOT], "joined twice"), ([SNAPSHOT, ANEW, ANEW], "begun anew 2 times and left 1 snapshots")],
)
def test_a_league_that_is_counted_wrongly_is_found(rows, mistake, tmp_path):
    run_dir = RunDir(tmp_path)
    (tmp_path / "league.jsonl").write_text("".join(f"{row}\n" for row in [SNAPSHOT, ANEW]))
    bookkeeping.require_files_in_order(run_dir)
    (tmp_path / "league.jsonl").write_text("".join(f"{row}\n" for row in rows))
    with pytest.raises(NotRecoveredError, match=mistake):
        bookkeeping.require_files_in_order(run_dir)


def test_a_counter_that_falls_is_found():
    records = [{"env_steps": 64, "policy_00/env_steps": 32}, {"env_steps": 128, "policy_00/env_steps": 16}]
    bookkeeping.require_no_fall(records, num_policies=1)
    with pytest.raises(NotRecoveredError, match="policy_00/env_steps fell"):
        bookkeeping.require_no_fall(records, num_policies=2)


def test_samples_that_nobody_stepped_or_that_are_nowhere_are_found(plan):
    bookkeeping.require_balance(plan, 1000, 1000, 1000, num_replaced=0)
    bookkeeping.require_balance(plan, 1200, 1000, 1300, num_replaced=0)
    with pytest.raises(NotRecoveredError, match="only 1000 stepped"):
        bookkeeping.require_balance(plan, 1000, 1100, 1000, num_replaced=0)
    with pytest.raises(NotRecoveredError, match="more than the"):
        bookkeeping.require_balance(plan, 2000, 1000, 2000, num_replaced=0)
    bookkeeping.require_balance(plan, 2000, 1000, 2000, num_replaced=20)  # each may cost the slots that were filled


def test_episodes_are_reported_or_lost():
    summary = {"episodes": 90, "lost_episodes": 8}
    bookkeeping.require_episodes(summary, steps_of_an_episode=8, stepped=800, slack=4)
    with pytest.raises(NotRecoveredError, match="800 steps are 100 episodes"):
        bookkeeping.require_episodes(summary | {"lost_episodes": 2}, steps_of_an_episode=8, stepped=800, slack=4)
