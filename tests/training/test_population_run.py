"""Populations in real runs: self-play, evolution, and that all of it comes back after a kill."""

import json
import random
import re

import pytest
from faults.processes import alive_below, wait_until_gone
from runs import start, train_here

from sf.envs.toys.matches import RockPaperScissors
from sf.league.population.record import histories, read_events
from sf.storage import checkpoint, checkpoint_names
from sf.storage.run_dir import RunDir


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


SELF_PLAY = {
    "num_policies": 2,
    "num_envs_per_worker": 16,
    "rollout": 8,
    "batch_size": 1024,
    "learning_rate": 1e-2,
    "lr_schedule": "linear",  # players that react to each other go in circles, ever smaller ones
    "adam_beta1": 0.0,  # momentum would drive them on
    "exploration_loss_coeff": 0.2,
    "normalize_advantages": "false",
    "stats_avg": 2000,
    "train_for_env_steps": 130_000,
}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_self_play_of_two_policies_finds_the_equilibrium_of_a_game(tmp_path):
    found = train_here(tmp_path, *_flags(SELF_PLAY), env="toy_match_rps")
    for policy in ("policy_00", "policy_01"):
        played = [found[f"{policy}/stats/{choice}"] for choice in ("rock", "paper", "scissors")]
        # The entropy bonus alone moves the equilibrium by 0.04; players that know nothing are 0.17 away.
        assert played == pytest.approx(RockPaperScissors.EQUILIBRIUM["player_0"], abs=0.09)
        assert found[f"{policy}/true_objective"] == found[f"{policy}/stats/win_rate"] == pytest.approx(0.5, abs=0.1)


EVOLUTION = {
    "num_envs_per_worker": 16,
    "learning_rate": 1e-4,
    "batch_size": 256,
    "rollout": 16,
    "save_every_sec": 2,
}
POPULATION = {
    **EVOLUTION,
    "num_policies": 2,
    "with_pbt": "true",
    "pbt_initial_lr_decades": 3,
    "pbt_start_mutation": 3000,
    "pbt_period_env_steps": 3000,
}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_population_with_spread_learning_rates_beats_its_median_member_trained_alone(tmp_path):
    num_steps = 14_000  # of each policy
    alone = train_here(tmp_path, *_flags({**EVOLUTION, "train_for_env_steps": num_steps}), "--experiment", "alone")
    population = train_here(
        tmp_path,
        *_flags({**POPULATION, "train_for_env_steps": 2 * num_steps}),
        *("--experiment", "population"),
    )
    assert alone["mean_return"] < 4.0  # of 8, and 2 at random
    # A policy that has taken over another's weights as the run ended has no episode of its own since.
    returns = [population[f"policy_{policy_id:02d}/mean_return"] for policy_id in range(2)]
    assert max(mean for mean in returns if mean is not None) > 5.0
    assert population["mean_return"] > alone["mean_return"] + 1.0
    events = read_events(tmp_path / "population")
    assert [event.hyperparameters["learning_rate"] for event in events[:2]] == pytest.approx([10**-5.5, 10**-2.5])
    assert {event.kind for event in events} >= {"start", "replacement"}
    assert all(past.hyperparameters["learning_rate"] > 1e-4 for past in histories(events).values())


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_population_that_was_killed_comes_back_with_its_lineage_and_counters(tmp_path):
    run = RunDir.at(str(tmp_path), "toy_identity")
    process = start(tmp_path, *_flags(POPULATION))
    num_events, have_saved = random.Random(0).randrange(2, 5), set()
    for line in process.stdout:
        num_events -= line.startswith("population: ")
        have_saved |= set(re.findall(r"saved .*(policy_\d+)", line))
        if num_events <= 0 and len(have_saved) == 2:
            break
    children = alive_below(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until_gone(children, timeout_s=30.0) == set()  # a learner may be about to save
    before, recorded = read_events(run.path), metrics(run.path)
    saved = [checkpoint.latest(run.checkpoints_of(policy_id, 2)) for policy_id in range(2)]
    saved_steps = [checkpoint_names.env_steps(path) if path else 0 for path in saved]
    total = sum(saved_steps) + 3_000
    flags = ["--train_for_env_steps", str(total), "--pbt_period_env_steps", str(10**9)]  # no generation more
    resumed_summary = train_here(tmp_path, *flags)
    after, resumed = read_events(run.path), metrics(run.path)[len(recorded) :]
    assert after == before
    for policy_id in range(2):
        steps = [record[f"policy_{policy_id:02d}/env_steps"] for record in resumed]
        assert saved_steps[policy_id] <= steps[0] <= steps[-1]
        assert steps == sorted(steps)
    assert resumed_summary["env_steps"] >= total
    # The learners have the hyperparameters of the record, and the weights that it says.
    for policy_id, past in histories(after).items():
        state = checkpoint.load(checkpoint.latest(run.checkpoints_of(policy_id, 2))).state
        assert state["weights_event"] == (past.weights_event if past.ancestors else 0)
        assert state["updater"]["learning_rate"] == pytest.approx(past.hyperparameters["learning_rate"])


def _flags(values):
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]
