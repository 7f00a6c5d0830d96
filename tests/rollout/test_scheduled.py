"""What `--anneal` changes in a rollout worker, and the episodes that it counts."""

import dataclasses

import numpy as np
import pytest
from scripted_group import SPEC, Scripted, Stage

from sf.config.schedules import Stage as Training

SIZED = dataclasses.replace(SPEC, schedulable={"size": (0, 100)})


@pytest.fixture
def stage(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(Scripted, "set_ranges", lambda self, *each: told.append(each), raising=False)

    def make(*lines, **flags):
        found = Stage(tmp_path, monkeypatch, spec=SIZED, anneal=lines, **flags)
        found.told = told
        return found

    return make


def publish(found, env_steps, policy_id=0, **moves):
    found.memory.scheduled.write(policy_id, Training(env_steps, moves=moves))


def test_environments_are_told_new_options_with_the_next_rollout(stage):
    found = stage("env.size=10:20@100", env_options={})
    for env_steps, sizes in ((0, [10.0]), (50, [15.0]), (50, []), (200, [20.0])):
        publish(found, env_steps)
        assert found.told == []
        found.group.begin_if_it_can()
        for _ in range(4):
            found.step()
        assert found.told == [(env_idx, {"size": (size, size)}) for size in sizes for env_idx in (0, 1)]
        found.told.clear()
        found.memory.pool.reset()


def test_an_episode_counts_for_the_value_that_it_began_with(stage):
    found = stage("env.size=10:20@mean_return:5")
    arrays = found.memory.scheduled.arrays

    def counts():
        return arrays["counts"].sum(), arrays["sums"].sum()

    def step(num):
        for _ in range(num):
            if found.group.is_parked:
                found.memory.pool.reset()
            found.step()

    step(3)
    assert counts() == (4, 0 + 1 + 2 + 3)  # all began at 10
    publish(found, 0, **{"env.size": 1})
    step(3)
    assert counts() == (4, 6)  # the episodes that ended had begun at 10, too
    step(6)
    assert counts() == (12, 18)
    assert (arrays["counts"][0, 0].reshape(2, -1)[1] == 3).all()  # of the second group


def test_a_metric_that_no_episode_has_is_remarked(stage, monkeypatch):
    said = []
    monkeypatch.setattr("sf.rollout.scheduled.remark", lambda about, sentence: said.append(sentence))
    found = stage("env.size=10:20@sucess:0.9")
    for _ in range(3):
        found.step()
    assert "'sucess'" in said[0]
    assert "mean_return" in said[0]


def test_the_share_of_matches_against_past_selves_follows_its_schedule(stage):
    found = stage("past_share=0.0:1.0@100", past_share=0.5, seats=2)
    publish(found, 25)
    found.group.begin_if_it_can()
    assert found.group._assignment.past_share == 0.25


def test_team_spirit_follows_the_schedule_of_the_policy_that_plays(tmp_path, monkeypatch):
    class Pays(Scripted):
        def step(self, discrete, continuous, obs, result):
            episodes = super().step(discrete, continuous, obs, result)
            result.reward[:] = np.arange(self.num_actors) % 2
            return episodes

    monkeypatch.setattr("scripted_group.Scripted", Pays)
    spec = dataclasses.replace(SPEC, teams=(0, 0))
    found = Stage(tmp_path, monkeypatch, spec=spec, anneal=("team_spirit=0:1@100",))
    publish(found, 50)
    found.step()
    assert found.rows["reward"][found.slots, 0].tolist() == [0.25, 0.75, 0.25, 0.75]
