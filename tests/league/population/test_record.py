"""The record of a population: whole whatever happens, and nothing in it twice."""

import json

import pytest
from full_disk import full_disk

from sf.league.population.evolution import Decision, Member
from sf.league.population.record import EVENTS, SENTENCES, PopulationRecord, read_events, sentences

INITIAL = {0: {"learning_rate": 1e-4}, 1: {"learning_rate": 1 / 3}, 2: {"learning_rate": 1e-3, "shaping/FRAG": -0.0}}
MEMBERS = [Member(policy_id, objective, INITIAL[policy_id]) for policy_id, objective in enumerate((0.5, 0.1, None))]
GENERATIONS = [
    [Decision(0, None, {"learning_rate": 1.1e-4}), Decision(1, 0, {"learning_rate": 2e-4})],
    [Decision(1, None, {"learning_rate": 0.1 + 0.2})],
]


def add_generation(record, idx):
    return record.add(GENERATIONS[idx], MEMBERS, env_steps={0: 1000 * (idx + 1), 1: 999 * (idx + 1)})


def full_record(directory):
    record = PopulationRecord(directory, INITIAL)
    for idx in range(len(GENERATIONS)):
        add_generation(record, idx)
    return record


def lines(path):
    return path.read_text().splitlines()


def test_a_decision_is_recorded_with_what_it_was_taken_on(tmp_path):
    record = full_record(tmp_path)
    event = record.events[4]
    assert (event.kind, event.policy_id, event.env_steps, event.objective) == ("replacement", 1, 999, 0.1)
    assert (event.copies, event.copied_objective) == (0, 0.5)
    assert [json.loads(line)["number"] for line in lines(tmp_path / EVENTS)] == [0, 1, 2, 3, 4, 5]
    assert lines(tmp_path / SENTENCES) == sentences(record.events)


def test_a_resumed_record_is_the_one_that_was_left(tmp_path):
    left = full_record(tmp_path)
    resumed = PopulationRecord(tmp_path, {policy_id: {"learning_rate": 9.0} for policy_id in INITIAL})
    assert resumed.events == left.events
    assert resumed.policies == left.policies
    assert resumed.num_decisions == 3
    assert resumed.policies[1].hyperparameters == {"learning_rate": 0.1 + 0.2}


def test_a_run_that_was_killed_goes_on_from_the_whole_prefix(tmp_path):
    events = full_record(tmp_path).events
    data, log = (tmp_path / EVENTS).read_bytes(), (tmp_path / SENTENCES).read_bytes()
    ends = [idx + 1 for idx, byte in enumerate(data) if byte == ord("\n")]
    for size in sorted({min(end + offset, len(data)) for end in (0, *ends) for offset in (-1, 0, 1)} - {-1}):
        (tmp_path / EVENTS).write_bytes(data[:size])
        (tmp_path / SENTENCES).write_bytes(log[: size % len(log)])
        resumed = PopulationRecord(tmp_path, INITIAL)
        num_whole = data[:size].count(b"\n")
        assert resumed.events[:num_whole] == events[:num_whole]
        assert len(resumed.events) == max(num_whole, len(INITIAL))  # policies without a start get one
        add_generation(resumed, 1)
        assert read_events(tmp_path) == resumed.events
        assert lines(tmp_path / SENTENCES) == sentences(resumed.events)


def test_a_full_disk_leaves_the_record_as_it_was(tmp_path):
    record = PopulationRecord(tmp_path, INITIAL)
    before = list(record.events)
    with full_disk((tmp_path / EVENTS).stat().st_size + 300), pytest.raises(OSError, match="File too large"):
        add_generation(record, 0)  # the first of two lines would fit
    assert record.events == read_events(tmp_path) == before
    add_generation(record, 0)
    assert read_events(tmp_path) == record.events
    assert lines(tmp_path / SENTENCES) == sentences(record.events)


def test_a_run_may_go_on_with_more_policies_but_not_with_fewer(tmp_path):
    full_record(tmp_path)
    before = (tmp_path / EVENTS).read_bytes()
    with pytest.raises(ValueError, match=r"num_policies is 2, but .* 3 policies"):
        PopulationRecord(tmp_path, {0: {}, 1: {}})
    assert (tmp_path / EVENTS).read_bytes() == before
    assert PopulationRecord(tmp_path, {**INITIAL, 3: {"learning_rate": 1.0}}).policies.keys() == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        (lambda text: text.replace("learning", 'lear"ning', 1), 1),
        (lambda text: "".join(text.splitlines(keepends=True)[1:]), 1),
        (lambda text: text.replace('"env_steps": 0', '"env_steps": "0"', 1), 1),
        (lambda text: text.replace('"start"', '"mutation"', 1).replace("null", "0.5", 1), 1),
        (lambda text: text.replace('"copies": 0', '"copies": 7', 1), 5),
    ],
)
def test_a_damaged_record_is_said_and_left_alone(tmp_path, damage, number):
    full_record(tmp_path)
    damaged = damage((tmp_path / EVENTS).read_text())
    (tmp_path / EVENTS).write_text(damaged)
    with pytest.raises(ValueError, match=f"line {number}, is"):
        PopulationRecord(tmp_path, INITIAL)
    assert (tmp_path / EVENTS).read_text() == damaged
