"""A value of the wrong type is refused in one sentence, from a preset, from the config.yaml of a run, and in Python."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

import sf
from sf.config import Config, LearnerConfig, ModelConfig, RunConfig, SamplerConfig, presets
from sf.storage.run_dir import RunDir

WRONG = [  # a value, and what it must be
    ("core", "rnn", "none, gru, lstm, mingru or transformer"),
    ("async_rl", "false", "true or false"),
    ("with_pbt", None, "true or false"),
    ("gamma", None, "a finite number"),
    ("max_grad_norm", math.nan, "a finite number"),
    ("stop_at_return", "best", "a finite number or None"),
    ("rollout", True, "a whole number"),
    ("num_workers", "all", "a whole number or auto"),
    ("encoder_mlp_layers", [64, 0.5], "a list of whole numbers"),
    ("encoder_mlp_layers", {"layers": 2}, "a list of whole numbers"),
    ("wandb_tags", [1, 2], "a list of texts"),
    ("encoder", False, "a text"),
    ("doom_map", 2, "a text or None"),
    ("env_kwargs", ["a"], "a JSON object or a mapping"),
    ("env_wrappers", ["a:B", 1], "a list of names, JSON objects and mappings"),
]
ACCEPTED = [  # a value, and what it is taken for
    ("learning_rate", "3e-4", 3e-4),  # YAML 1.1 reads these two as text
    ("train_for_env_steps", "1e6", 1_000_000),
    ("num_workers", "2", 2),
    ("stop_at_return", "None", None),
    ("encoder_mlp_layers", 64, (64,)),
    ("encoder_mlp_layers", [64, 32.0], (64, 32)),
    ("wandb_tags", "one", ("one",)),
    ("env_kwargs", {"a": {"b": [1, None]}}, '{"a": {"b": [1, null]}}'),
    ("env_wrappers", "a:B", ("a:B",)),
    ("env_wrappers", ["a:B", {"a:C": {"b": [1, None]}}], ("a:B", '{"a:C": {"b": [1, null]}}')),
]


def sentence_of(refused):
    """One sentence, which begins with what the message is about."""
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A run directory, and the flags in its config.yaml."""
    run_dir = RunDir.at(str(tmp_path_factory.mktemp("train_dir")), "toy_bandit")
    run_dir.prepare(Config().replace(env="toy_bandit"))
    return run_dir, yaml.safe_load(run_dir.config.read_text())


def component_of(name):
    kinds = [type(getattr(Config(), field.name)) for field in dataclasses.fields(Config)]
    return next(kind for kind in kinds if name in {field.name for field in dataclasses.fields(kind)})


@pytest.mark.parametrize("way", ["preset", "config.yaml", "make_config", "replace", "component", "dataclasses.replace"])
@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_a_wrong_value_is_refused_wherever_it_comes_from(name, value, allowed, way, started, tmp_path):
    run_dir, flags = started
    preset = tmp_path / "my.yaml"
    preset.write_text(yaml.safe_dump({name: value}))
    run_dir.config.write_text(yaml.safe_dump({**flags, name: value}))
    source = {"preset": f"{preset}: ", "config.yaml": f"{run_dir.config}: "}.get(way, "")
    make = {
        "preset": lambda: sf.make_config(env="toy_bandit", config=str(preset), train_dir=str(tmp_path)),
        "config.yaml": lambda: sf.make_config(env="toy_bandit", train_dir=str(run_dir.path.parent)),
        "make_config": lambda: sf.make_config(env="toy_bandit", **{name: value}),
        "replace": lambda: Config().replace(**{name: value}),
        "component": lambda: component_of(name)(**{name: value}),
        "dataclasses.replace": lambda: dataclasses.replace(component_of(name)(), **{name: value}),
    }[way]
    with pytest.raises(ValueError) as refused:
        make()
    assert sentence_of(refused).startswith(f"{source}{name} is {value!r}")
    assert f": it must be {allowed}" in sentence_of(refused)


@pytest.mark.parametrize(("name", "value", "taken"), ACCEPTED)
def test_what_is_as_good_as_the_type_is_converted(name, value, taken, tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({name: value}))
    of_preset = sf.make_config(env="toy_bandit", config=str(path), train_dir=str(tmp_path)).flat()[name]
    of_component = getattr(component_of(name)(**{name: value}), name)
    for found in (of_preset, of_component, Config().replace(**{name: value}).flat()[name]):
        assert (found, type(found)) == (taken, type(taken))


def test_numbers_of_numpy_and_paths_are_plain_afterwards():
    assert type(RunConfig(seed=np.int64(3)).seed) is int
    assert type(LearnerConfig(gamma=np.float32(0.5)).gamma) is float
    assert SamplerConfig(async_rl=np.bool_(False)).async_rl is False
    assert ModelConfig(encoder_mlp_layers=np.array([8, 4])).encoder_mlp_layers == (8, 4)
    assert RunConfig(train_dir=Path("runs")).train_dir == "runs"
    yaml.safe_dump(Config().replace(seed=np.int64(3), train_dir=Path("runs")).flat())


def test_a_component_in_the_place_of_another_is_refused():
    with pytest.raises(ValueError, match=r"learner is ModelConfig\(.*it must be a LearnerConfig"):
        Config(learner=ModelConfig())
    with pytest.raises(ValueError, match="config is 'toy_bandit': "):
        sf.train("toy_bandit")


@pytest.mark.parametrize(
    ("name", "fits", "does_not"),
    [("stats_avg", 2**63 - 1, 10**20), ("seed", 2**32 - 1, 2**32), ("seed", 0, -1), ("seed", 1, 2**64)],
)
def test_an_integer_that_counters_and_generators_do_not_take_is_refused(name, fits, does_not):
    sf.make_config(env="toy_bandit", **{name: fits})
    with pytest.raises(ValueError, match=f"{name} is {does_not}: it must be"):
        sf.make_config(env="toy_bandit", **{name: does_not})


def test_a_rule_that_a_value_of_a_file_breaks_names_the_file(tmp_path):
    (tmp_path / "my.yaml").write_text("gamma: 2\n")
    with pytest.raises(ValueError, match=r"my\.yaml: gamma is 2\.0: from 0 to 1"):
        sf.make_config(env="toy_bandit", config=str(tmp_path / "my.yaml"), train_dir=str(tmp_path))
    with pytest.raises(ValueError, match=r"^gamma is 3\.0: from 0 to 1"):
        sf.make_config(env="toy_bandit", config=str(tmp_path / "my.yaml"), train_dir=str(tmp_path), gamma=3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gama: 1\n", "my.yaml: unknown setting gama: did you mean gamma?"),
        ("extends: other.yaml\n", "my.yaml extends itself: my.yaml extends other.yaml extends my.yaml"),
        ("extends:\n", "my.yaml: extends is None: it must be the name of a preset"),
        ("gamma: [1\n", "my.yaml is not YAML: while parsing a flow sequence"),
    ],
)
def test_a_preset_that_is_none_is_refused(text, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.yaml").write_text("extends: my.yaml\n")
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(ValueError) as refused:
        presets.load("my.yaml")
    assert sentence_of(refused).startswith(sentence)
