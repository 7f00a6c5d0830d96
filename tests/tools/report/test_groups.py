"""Which runs are seeds of one experiment, and what a legend says of them."""

from pathlib import Path

import pytest

from sf.config import Config
from sf.storage.run_dir import RunDir
from sf.tools.report.groups import group
from sf.tools.report.runs import Run


def run(name, **flags):
    path = RunDir.at("train_dir", name)
    return Run(path, {**Config().replace(**flags).flat(), "experiment": name}, [])


def labels(runs, by=()):
    return {members.label: [run.name for run in members.runs] for members in group(runs, by)}


def test_seeds_are_one_experiment_wherever_and_however_long_they_run():
    runs = [run("a", seed=1), run("b", seed=2, device="cpu", train_for_env_steps=50, learner_threads=1)]
    runs.append(run("c", seed=3, eval_every_env_steps=1000, with_wandb=True, wandb_group="all", reward_scale=1))
    assert labels(runs) == {"": ["a", "b", "c"]}


def test_a_label_names_what_differs_and_nothing_else():
    runs = [run(f"{rate}_{seed}", learning_rate=rate, seed=seed) for seed in (1, 2) for rate in (1e-3, 2.5e-4)]
    assert labels(runs) == {
        "learning_rate 0.001": ["0.001_1", "0.001_2"],
        "learning_rate 0.00025": ["0.00025_1", "0.00025_2"],
    }


@pytest.mark.parametrize(
    "changing",
    [
        {"lr_schedule": "linear"},
        {"lr_schedule": "cosine"},
        {"lr_adaptive_max_final": 0.0},
        {"exploration_loss_coeff_final": 0.01},
        {"exploration_loss_coeff_extra": 0.1},
    ],
)
def test_the_number_of_steps_counts_where_something_changes_towards_their_end(changing):
    runs = [run(str(steps), **changing, train_for_env_steps=steps) for steps in (1000, 2000)]
    assert list(labels(runs)) == ["train_for_env_steps 1000", "train_for_env_steps 2000"]


def test_named_settings_alone_make_the_groups():
    runs = [run("a", core="gru", gamma=0.9), run("b", core="gru", gamma=0.99), run("c", core="lstm")]
    assert labels(runs, ["core"]) == {"core gru": ["a", "b"], "core lstm": ["c"]}
    assert labels(runs, ["seed"]) == {"": ["a", "b", "c"]}
    assert labels(runs, ["experiment"]) == {"a": ["a"], "b": ["b"], "c": ["c"]}


def test_runs_of_one_name_are_told_apart_by_their_folders():
    def placed(path):
        return Run(RunDir(Path(path)), {"experiment": Path(path).name}, [])

    runs = [placed("/x/a/doom"), placed("/x/b/doom"), placed("/y/b/doom"), placed("/x/other")]
    assert list(labels(runs, ["experiment"])) == ["x/a/doom", "x/b/doom", "y/b/doom", "x/other"]
