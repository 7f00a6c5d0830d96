"""Files of flags that are no YAML, or have a key twice, are refused in one sentence."""

import pytest

from sf.config import presets
from sf.envs.yaml_text import parse_yaml
from sf.tools.sweep.grid import read_sweep
from sf.tools.tune.search import read_search


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed: 1\ngamma: 0.9\nseed: 2\n", "base.yaml: seed is in line 1 and in line 3: leave one of them out"),
        ("a: [{b: {c: 1, c: 2}}]\n", "base.yaml: c is in line 1 twice"),
    ],
)
def test_a_key_that_is_there_twice_is_one_sentence_with_its_lines(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_yaml(text, "base.yaml")
    with pytest.raises(ValueError, match=sentence):
        presets.parse(text, "base.yaml")


def test_a_key_may_be_in_several_mappings_and_give_way_to_that_of_a_merge():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: {<<: *a, y: 4}\n"
    assert parse_yaml(text, "base.yaml") == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"x": 1, "y": 4}}


@pytest.mark.parametrize("text", ["{a: ", "2026-13-01: 1", "[" * 2000, "!!python/object/apply:os.getcwd []"])
def test_what_is_not_yaml_is_one_sentence(text):
    with pytest.raises(ValueError, match=r"^base\.yaml is not YAML: "):
        parse_yaml(text, "base.yaml")


def test_a_few_lines_that_stand_for_billions_of_values_are_refused_before_they_are_written_out():
    lists = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    text = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *lists])
    with pytest.raises(ValueError, match=r"^base\.yaml: its aliases stand for 12,345,679,021 values"):
        parse_yaml(text, "base.yaml")
    assert parse_yaml("a: &a [1, 2]\nb: [*a, *a]\n", "base.yaml") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}


def test_a_sweep_and_a_search_have_each_section_once(tmp_path):
    path = tmp_path / "base.yaml"
    path.write_text("flags: {env: toy_bandit}\ngrid: {gamma: [0.9]}\ngrid: {rollout: [8]}\n")
    with pytest.raises(ValueError, match=r"base\.yaml: grid is in line 2 and in line 3"):
        read_sweep(path)
    path.write_text("flags: {env: toy_bandit}\nsearch:\n  gamma: [0.9]\n  gamma: [0.8]\n")
    with pytest.raises(ValueError, match=r"base\.yaml: gamma is in line 3 and in line 4"):
        read_search(path)
