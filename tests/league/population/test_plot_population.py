"""The picture of a population: who took over from whom, and one clear sentence where there is nothing to draw."""

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from plot_population import draw, load

from sf.config.flags.population import PopulationConfig
from sf.league.population.evolution import Member, evolve
from sf.league.population.record import PopulationRecord, histories

FRAMESKIP = 4
PERIOD = 1_000_000
RULES = PopulationConfig(num_policies=4, with_pbt=True, pbt_optimize_gamma=True, pbt_mutation_rate=0.5)


def write_record(directory, env_steps, objectives):
    fields = {f"policy_{idx:02d}/env_steps": env_steps for idx in range(len(objectives))}
    fields |= {f"policy_{idx:02d}/true_objective": objective for idx, objective in enumerate(objectives)}
    with (directory / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"env_steps": 4 * env_steps, "env_frames": 16 * env_steps, **fields}) + "\n")


@pytest.fixture
def directory(tmp_path):
    """Four policies that learn the faster the higher their learning rate, through six generations."""
    rng = np.random.default_rng(0)
    initial = {
        idx: {"learning_rate": rate, "gamma": 0.99, "shaping/FRAG": 1.0, "shaping/DEATH": -0.5, "shaping/NONE": 0.0}
        for idx, rate in enumerate((1e-5, 3e-5, 1e-4, 3e-4))
    }
    record = PopulationRecord(tmp_path, initial)
    skills = [0.0] * 4
    write_record(tmp_path, 0, [None] * 4)
    for step in range(1, 61):
        policies = record.policies
        rates = [policies[idx].hyperparameters["learning_rate"] for idx in range(4)]
        skills = [skill + 1000 * rate * rng.uniform() for skill, rate in zip(skills, rates, strict=True)]
        env_steps = step * PERIOD // 10
        write_record(tmp_path, env_steps, skills)
        if env_steps % PERIOD == 0:
            members = [Member(idx, skills[idx], policies[idx].hyperparameters) for idx in range(4)]
            decisions = evolve(members, RULES, rng)
            record.add(decisions, members, dict.fromkeys(range(4), env_steps))
            copied = {d.policy_id: skills[d.copies] for d in decisions if d.copies is not None}
            skills = [copied.get(idx, skill) for idx, skill in enumerate(skills)]
    return tmp_path


def test_a_replaced_policy_jumps_along_an_arrow_to_the_one_it_copied(directory):
    write_record(directory, 5_550_000, [1.0] * 4)  # it went back to a checkpoint
    run = load(directory, "true_objective")
    assert (np.diff(run.curves[0][:, 0]) > 0).all()
    event = next(event for event in run.events if event.kind == "replacement")
    top, *panels = draw(run, "true_objective").axes
    titles = ["learning_rate", "1 / (1 - gamma)", "shaping/FRAG", "-shaping/DEATH"]  # of those that changed
    assert [axis.get_title() for axis in panels] == titles
    x, y = next(line for line in top.lines if line.get_label() == f"policy {event.policy_id}").get_data()
    frames = event.env_steps * FRAMESKIP / 1e6
    own, gap, copied = np.flatnonzero(np.isclose(x, frames))[-3:]
    assert y[own] == event.objective
    assert np.isnan(y[gap])
    assert y[copied] == event.copied_objective
    assert len(top.texts) == sum(event.kind == "replacement" for event in run.events)


def test_the_band_follows_the_weights_of_the_best_through_their_owners(directory):
    run = load(directory, "true_objective")
    policies = histories(run.events)
    replaced = next(policy_id for policy_id, history in policies.items() if history.ancestors)
    run.curves[replaced][-1, 1] = 1e9  # so it is the best
    assert run.best == replaced
    x, y = draw(run, "true_objective").axes[0].lines[0].get_data()
    assert (x == run.curves[0][:, 0]).all()
    latest, first = policies[replaced].ancestors[0], policies[replaced].ancestors[-1]
    is_own = x > latest.env_steps * FRAMESKIP / 1e6
    assert (y[is_own] == run.curves[replaced][is_own, 1]).all()
    is_of_first = x <= first.env_steps * FRAMESKIP / 1e6
    assert np.array_equal(y[is_of_first], run.curves[first.policy_id][is_of_first, 1], equal_nan=True)
