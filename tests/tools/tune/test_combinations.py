"""Which combinations of a search can run: all of few, some of many, each bound and choice in at least one."""

import re

import pytest
import yaml

from sf.config import Config
from sf.tools.tune.combinations import try_combinations
from sf.tools.tune.search import read_search

FLAGS = {"env": "toy_bandit", "num_workers": 1, "train_for_env_steps": 1024}


@pytest.fixture
def tried(tmp_path):
    """What comes of a space, and how often a configuration was made from its flags."""
    made = []

    def find(space):
        path = tmp_path / "tune.yaml"
        path.write_text(yaml.safe_dump({"flags": FLAGS, "search": space}))
        search = read_search(path)

        def configured(point):
            made.append(point)
            return search.runs(0, point)[0].configured(tmp_path)

        return try_combinations(search, path, configured)

    find.made = made
    return find


def test_all_combinations_of_few_values_are_tried(tried):
    found = tried({"rollout": [32, 48], "batch_size": [256, 384], "num_epochs": {"low": 1, "high": 9, "step": 4}})
    assert len(found.points) == 9
    assert "3 of 12 combinations under search cannot run (batch_size is 256" in found.why_not_all
    for point, config in zip(found.points, found.configs, strict=True):
        assert {name: config.flat()[name] for name in point} == point


def test_where_all_can_run_nothing_is_said(tried):
    found = tried({"rollout": [16, 32], "gamma": {"low": 0.9, "high": 0.99, "step": 0.03}})
    assert found.why_not_all is None
    assert {round(point["gamma"], 6) for point in found.points} == {0.9, 0.93, 0.96, 0.99}
    assert len(tried.made) == 1  # the others are of the same preset


def test_of_many_combinations_some_are_drawn_and_each_bound_is_tried(tried):
    space = {"learning_rate": {"low": 0.001, "high": 0.1, "log": True}, "rollout": [32, 48], "batch_size": [256, 384]}
    found = tried(space)
    num_refused, num_drawn = map(int, re.search(r"(\d+) of (\d+) combinations", found.why_not_all).groups())
    assert num_drawn == 202
    assert 30 < num_refused < 70  # a quarter
    rates = [point["learning_rate"] for point in found.points]
    assert {0.001, 0.1} <= set(rates)
    assert 60 < sum(rate < 0.01 for rate in rates) < 90  # half of those that can run


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({"gamma": {"low": 0.5, "high": 1.6}}, "combinations under search cannot run (gamma is 1."),
        ({"gamma": {"low": 0.9, "high": 1.01}}, "tune.yaml: gamma is 1.01"),
        ({"rollout": [32, 48, 7], "batch_size": [96, 192, 288]}, "must be a multiple of rollout (7)"),
        ({"rollout": [48], "batch_size": [256, 320, 384, 250]}, "3 of 4 combinations under search cannot run"),
        ({"env_frameskip": [1, 2], "train_for_env_steps": [64, 128]}, "train_for_env_steps is 64 in some"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused_with_a_sentence(space, sentence, tried, monkeypatch):
    monkeypatch.setitem(FLAGS, "train_for_env_steps", None) if "train_for_env_steps" in space else None
    for name in set(FLAGS) & set(space):
        monkeypatch.delitem(FLAGS, name)
    with pytest.raises(ValueError) as error:
        tried(space)
    assert sentence in str(error.value)


def test_flags_that_can_never_run_are_given_up_soon(tried, monkeypatch):
    monkeypatch.setitem(FLAGS, "gae_lambda", 7.0)
    with pytest.raises(ValueError, match="gae_lambda is 7"):
        tried({"gamma": {"low": 0.9, "high": 0.99}})
    assert len(tried.made) == 20


def test_where_options_of_the_environment_are_searched_each_has_its_preset(tried):
    found = tried({"env_frameskip": [1, 2], "gamma": [0.9, 0.99]})
    assert len(tried.made) == len(found.points) == 4
    assert all(isinstance(config, Config) for config in found.configs)
