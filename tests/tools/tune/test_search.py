"""The file of a search: what Optuna chooses from, and every mistake with a sentence."""

import optuna
import pytest
import yaml

from sf.tools.tune.search import read_search

FLAGS = {"env": "toy_bandit", "num_workers": 1, "train_for_env_steps": 1000}


def search(tmp_path, **file):
    path = tmp_path / "tune.yaml"
    path.write_text(yaml.safe_dump({"flags": FLAGS, "search": {"gamma": [0.9, 0.99]}, **file}))
    return read_search(path)


def test_each_kind_of_value_is_chosen_from_what_the_file_names(tmp_path):
    space = {
        "learning_rate": {"low": 0.0001, "high": 0.01, "log": True},
        "gamma": {"low": 0, "high": 1},  # whole bounds of a flag that takes any number
        "num_epochs": {"low": 1, "high": 9, "step": 4},
        "encoder_mlp_layers": [[8], [16, 16]],
        "normalize_input": [True, False],
    }
    found = search(tmp_path, search=space)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    chosen = [found.suggest(study.ask()) for _ in range(40)]
    assert all(0.0001 <= each["learning_rate"] <= 0.01 for each in chosen)
    assert sum(each["learning_rate"] < 0.001 for each in chosen) > 10  # half of the orders of magnitude
    assert any(0 < each["gamma"] < 1 for each in chosen)
    assert {each["num_epochs"] for each in chosen} == {1, 5, 9}
    assert {each["encoder_mlp_layers"] for each in chosen} == {(8,), (16, 16)}
    assert {each["normalize_input"] for each in chosen} == {True, False}


def test_the_runs_of_a_trial_differ_in_their_seeds_alone(tmp_path):
    runs = search(tmp_path, seeds=[3, 5]).runs(7, {"gamma": 0.9})
    assert [run.name for run in runs] == ["trial_00007_seed=3", "trial_00007_seed=5"]
    assert [run.flags for run in runs] == [{**FLAGS, "gamma": 0.9, "seed": seed} for seed in (3, 5)]


def test_more_trials_or_workers_are_the_same_search_and_other_values_are_not(tmp_path):
    fingerprint = search(tmp_path).fingerprint()
    assert search(tmp_path, trials=99).fingerprint() == fingerprint
    assert search(tmp_path, flags={**FLAGS, "num_workers": 2}).fingerprint() == fingerprint
    assert search(tmp_path, seeds=2).fingerprint() != fingerprint
    assert search(tmp_path, search={"gamma": [0.9, 0.98]}).fingerprint() != fingerprint


def space(values):
    return {"search": {"gamma": values}}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"flags": {}}, "name an environment under flags"),
        ({"search": {"gama": [0.9]}}, "gama"),
        (space(0.9), "gamma under search is 0.9"),
        (space({"low": 0.9, "high": 0.8}), "low must be less than high"),
        (space({"low": 0, "high": 1, "log": True}), "with log, low must be"),
        *((space({"low": 0, "high": 1, "step": step}), "step must be") for step in (0, float("inf"), 10**400)),
        ({"search": {"num_epochs": {"low": 1, "high": 4, "step": float("nan")}}}, "step must be"),
        ({"search": {"num_epochs": {"low": 1, "high": 4, "step": 0.5}}}, "must be whole"),
        ({"search": {"normalize_input": {"low": False, "high": True}}}, "low and high must be numbers"),
        (space([0.9, 0.9]), "gamma under search has a value twice"),
        ({"search": {"num_workers": [1]}}, "num_workers is under flags and under search"),
        ({"search": {"seed": [1, 2]}}, "list the seeds under seeds"),
        ({"seeds": [0, 0]}, r"seeds is \[0, 0\]"),
        ({"trials": 0}, "trials is 0"),
        ({"grid": {}}, "with the keys flags, search, trials"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, file, message):
    with pytest.raises(ValueError, match=message) as error:
        search(tmp_path, **file)
    assert "tune.yaml" in str(error.value)
