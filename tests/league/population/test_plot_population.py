"""The picture of a population: who took over from whom, and one clear sentence where there is nothing to draw."""

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import plot_population
from plot_population import draw, load

from sf.config.flags.population import PopulationConfig
from sf.league.population.evolution import Decision, Member, evolve
from sf.league.population.lineage import histories
from sf.league.population.record import PopulationRecord

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


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_is_written_in_the_format_of_its_name(directory, suffix, monkeypatch):
    out = directory / f"picture{suffix}"
    monkeypatch.setattr("sys.argv", ["plot_population", str(directory), "--out", str(out)])
    plot_population.main()
    beginning = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(beginning)
    assert out.stat().st_size > 5000


def test_a_hyperparameter_that_is_in_some_events_alone_is_drawn_from_these(directory):
    record = PopulationRecord(directory, {idx: {} for idx in range(4)})
    rates = {idx: dict(history.hyperparameters) for idx, history in record.policies.items()}
    members = [Member(idx, 1.0, rates[idx]) for idx in range(4)]
    added = [Decision(1, None, {**rates[1], "shaping/NEW": weight}) for weight in (1.0, 1.5)]
    for decision in added:
        record.add([decision], members, dict.fromkeys(range(4), 6 * PERIOD))
    evolution = load(directory, "true_objective")
    assert "shaping/NEW" in [axis.get_title() for axis in draw(evolution, "true_objective").axes]


def test_there_is_a_panel_for_the_objective_and_one_for_each_hyperparameter_that_changed(directory):
    top, *panels = draw(load(directory, "true_objective"), "true_objective").axes
    assert top.get_ylabel() == "true_objective"
    assert [axis.get_title() for axis in panels] == [
        "learning_rate",
        "1 / (1 - gamma)",
        "shaping/FRAG",
        "-shaping/DEATH",
    ]
    assert all(axis.get_yscale() == "log" for axis in panels)


def test_only_the_hyperparameters_that_are_named_are_drawn(directory):
    figure = draw(load(directory, "true_objective"), "true_objective", ["gamma"])
    assert [axis.get_title() for axis in figure.axes[1:]] == ["1 / (1 - gamma)"]


def test_a_replaced_policy_jumps_along_an_arrow_to_the_one_it_copied(directory):
    run = load(directory, "true_objective")
    event = next(event for event in run.events if event.kind == "replacement")
    top = draw(run, "true_objective").axes[0]
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


def test_a_run_that_went_back_to_a_checkpoint_is_drawn_once(directory):
    write_record(directory, 5_550_000, [1.0] * 4)
    frames = load(directory, "true_objective").curves[0][:, 0]
    assert (np.diff(frames) > 0).all()
    assert frames[-1] == 5.55 * FRAMESKIP


def test_half_a_line_at_the_end_of_the_metrics_is_left_out(directory):
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 24')
    assert len(load(directory, "true_objective").curves[0]) == 60


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{empty}"], "is no run of a population"),
        (["{run}", "--y", "winrate"], "has no policy_00/winrate yet"),
        (["{run}", "--out", "picture.bmp"], "its name must end with .png, .svg or .pdf"),
        (["{run}", "--hyperparameters", "gama"], "hyperparameters has gama, which"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(directory, arguments, sentence, monkeypatch, capsys):
    (directory / "empty").mkdir()
    places = {"empty": directory / "empty", "run": directory}
    monkeypatch.setattr("sys.argv", ["plot_population", *(argument.format(**places) for argument in arguments)])
    with pytest.raises(SystemExit) as end:
        plot_population.main()
    assert end.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
