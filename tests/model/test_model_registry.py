"""Encoders and models of one's own, by name."""

import re
import sys
from importlib.metadata import EntryPoint

import gymnasium as gym
import numpy as np
import pytest
from torch import nn

from sf.config import Config, ModelConfig
from sf.envs.errors import UsageError
from sf.model import registry
from sf.model.encoders.choice import build_encoder
from sf.model.registry import register_encoder
from sf.run.planning import make_plan

SPACE = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
SOURCE = """
from torch import nn
from sf import register_encoder


class Own(nn.Module):
    def __init__(self, space, config):
        super().__init__()
        self.out_size = space.shape[0]


@register_encoder("own_by_name")
class Other(Own):
    pass


def make(space, config):
    return Own(space, config)


class Plain:
    pass


def takes_nothing(): ...
def makes_text(space, config): return "x"
def makes_no_encoder(*_): return nn.Flatten()


from shutil import rmtree
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def _own_names():
    before = dict(registry._encoders)
    yield
    registry._encoders.clear()
    registry._encoders.update(before)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_nets.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)  # as a command finds it, which has only the working directory to look in
    monkeypatch.setattr("sys.path", [*sys.path])
    yield "own_nets"
    sys.modules.pop("own_nets", None)


@pytest.mark.parametrize("name", ["Own", "own_by_name", "Other", "make"])
def test_module_and_name_find_a_class_and_what_the_module_registers(own_module, name):
    encoder = build_encoder(f"{own_module}:{name}", SPACE, ModelConfig())
    assert encoder.out_size == 3
    assert type(encoder).__name__ == ("Own" if name in ("Own", "make") else "Other")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("own_nets:Missing", "importing own_nets did not register 'Missing', and it has no class or function"),
        ("own_nets:NUMBER", "did not register 'NUMBER'"),
        ("own_nets:Plain", "encoder 'own_nets:Plain': Plain is a class, but not a torch.nn.Module: name one that is"),
        ("own_nets:rmtree", "encoder 'own_nets:rmtree': rmtree is not defined in own_nets"),
        ("os:system", "encoder 'os:system': os is a module of Python itself"),
        ("own_nets:", "encoder 'own_nets:' is not of the form module:Name"),
        ("no_such_nets:Own", "encoder 'no_such_nets:Own': no_such_nets cannot be imported"),
        ("rsnet", "encoder is rsnet, which is not registered: did you mean resnet"),
        ("own_nets:takes_nothing", "and cannot be called so (too many positional arguments)"),
        ("own_nets:makes_text", "and makes a str"),
        ("own_nets:makes_no_encoder", "encoder is own_nets:makes_no_encoder, which has no out_size: set it to"),
    ],
)
def test_a_name_of_no_encoder_is_refused_in_one_sentence_with_what_to_change(own_module, name, sentence):
    with pytest.raises(ValueError) as refused:
        build_encoder(name, SPACE, ModelConfig())
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("json:loads", "json is a module of Python itself"),
        ("gymnasium:Env", "Env is a class, but not a torch.nn.Module"),
    ],
)
def test_a_model_that_is_no_network_is_refused_before_anything_starts(name, sentence):
    with pytest.raises(ValueError, match=f"^model '{name}': {sentence}"):
        make_plan(Config().replace(env="toy_bandit", model=name))


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("        raise KeyError('width')\n", "KeyError: 'width' ({file}, line 6): fix it there"),
        ("        pass\nint('one')\n", "ValueError: {any} ({file}, line 7): fix it there"),
        ("        raise SystemExit\n", "SystemExit ({file}, line 6): fix it there"),
    ],
)
@pytest.mark.parametrize("kind", ["encoder", "model"])
def test_a_network_of_ones_own_that_raises_is_one_sentence_with_its_own_line(
    own_module, tmp_path, kind, code, sentence
):
    file = tmp_path / "own_nets.py"
    head = (
        "from torch import nn\n\nclass Fails(nn.Module):\n    def __init__(self, *args):\n        super().__init__()\n"
    )
    file.write_text(head + code)
    with pytest.raises(UsageError) as refused:
        make_plan(Config().replace(env="toy_bandit", **{kind: "own_nets:Fails"}))
    said = re.escape(f"{kind} 'own_nets:Fails' cannot be made: {sentence}").replace(re.escape("{any}"), ".+")
    assert re.fullmatch(said.replace(re.escape("{file}"), re.escape(str(file))), str(refused.value))


@pytest.mark.parametrize(
    ("members", "lacks"),
    [
        ("", "state_size, no trunk, no value_norm, no step, no unroll, no update_normalizers, no update_value_norm"),
        ("state_size = 'none'\n    trunk = nn.Linear(2, 2)\n    value_norm = nn.Identity()\n", "state_size, no step, "),
    ],
)
def test_a_model_of_ones_own_without_the_members_that_are_used_is_refused(own_module, tmp_path, members, lacks):
    (tmp_path / "own_nets.py").write_text(
        "from torch import nn\n\nclass Bare(nn.Module):\n    def __init__(self, *args):\n        super().__init__()\n"
        f"    {members}"
    )
    with pytest.raises(UsageError, match=rf"^model is own_nets:Bare, which has no {lacks}.*own_model\.py"):
        make_plan(Config().replace(env="toy_bandit", model="own_nets:Bare"))


def test_a_network_with_lazy_layers_is_refused(own_module, tmp_path):
    (tmp_path / "own_nets.py").write_text(
        "from torch import nn\n\ndef makes(space, config):\n    made = nn.Sequential(nn.LazyLinear(4))\n"
        "    made.out_size = 4\n    return made\n"
    )
    with pytest.raises(UsageError, match=r"^the network has no shape for \S+weight, \S+bias before its first forward"):
        make_plan(Config().replace(env="toy_bandit", encoder="own_nets:makes"))


def test_an_entry_point_is_loaded_only_for_a_name_that_is_not_known_otherwise(own_module, monkeypatch):
    asked = []

    def entry_points(group):
        asked.append(group)
        return [EntryPoint("mine", own_module, group)]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    build_encoder("mlp", SPACE, ModelConfig())
    assert not asked
    monkeypatch.syspath_prepend(".")
    assert build_encoder("own_by_name", SPACE, ModelConfig()).out_size == 3
    assert asked == ["sf.models"]


def test_the_same_class_may_be_registered_again_and_another_one_not():
    for _ in range(2):  # as a cell of a notebook that runs twice

        @register_encoder("mine_again")
        class Mine(nn.Module):
            pass

    with pytest.raises(ValueError, match="encoder mine_again is registered already"):

        @register_encoder("mine_again")
        class Another(nn.Module):
            pass
