"""Settings that somebody else has written are of the kinds that the flags take."""

import pytest

from sf import presets
from sf.config import Config
from sf.trust.setting_types import require_right_kinds


def test_all_defaults_and_presets_are_of_the_right_kinds():
    require_right_kinds(Config().flat(), "the defaults")
    for name in presets.preset_names():
        require_right_kinds(presets.load(name), name)


def test_a_whole_number_may_be_written_as_any_number_and_a_tuple_as_a_list():
    require_right_kinds({"train_for_env_steps": 1e6, "gamma": 1, "encoder_mlp_layers": [16]}, "a file")
    require_right_kinds({"num_workers": "auto", "env_frameskip": None, "unknown": object()}, "a file")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rollout": "32"},
        {"rollout": 1.5},
        {"rollout": True},
        {"rollout": None},
        {"gamma": "0.9"},
        {"gamma": False},
        {"async_rl": 1},
        {"env": 5},
        {"env": ["CartPole-v1"]},
        {"nonlinearity": "sigmoid"},
        {"nonlinearity": ["elu"]},
        {"num_workers": "many"},
        {"encoder_mlp_layers": 16},
        {"encoder_mlp_layers": "ab"},
        {"encoder_mlp_layers": [16, "x"]},
        {"doom_map": 3},
    ],
)
def test_a_value_of_another_kind_is_named(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"a file has {name} .*, which is not what --{name} takes"):
        require_right_kinds(wrong, "a file")
