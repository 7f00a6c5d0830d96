"""Environments that are given as objects: classes and functions that no other process can import."""

import pickle
from functools import partial

import pytest
from group_driver import play
from gymnasium.vector import SyncVectorEnv

from sf import envs
from sf.envs import EnvOptions, registry
from sf.envs.custom import given
from sf.envs.custom.given import given_env
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.registry import code_of, name_of
from sf.envs.toys.matches import Pennies
from sf.envs.toys.single import Bandit, Memory


@pytest.fixture(autouse=True)
def _nothing_given_before(monkeypatch):
    monkeypatch.setattr(given, "_given", {})


def kinds():
    """By name: what may be given, and the group that it becomes."""

    class Walk(Bandit):
        pass

    class Match(Pennies):
        pass

    class Many(SyncVectorEnv):
        def __init__(self, num_envs):
            super().__init__([Bandit] * num_envs)

    def many(num_envs):
        return SyncVectorEnv([Bandit] * num_envs)

    return {
        "python:Walk": (Walk, GymGroup),
        "python:Match": (Match, ParallelGroup),
        "python:Many": (Many, VectorGroup),
        "python:many": (many, VectorGroup),
        "python:lambda": (lambda num_rounds=3: Match(), ParallelGroup),
        "python:Memory": (partial(Memory, delay=2), GymGroup),
    }


@pytest.mark.parametrize("name", kinds())
def test_a_class_or_a_function_has_a_name_and_makes_what_it_makes(name):
    env, kind = kinds()[name]
    assert name_of(env) == name
    group = envs.make_group(name, 2, EnvOptions(), seed=0, first_env_idx=0)
    play(group, 4)
    assert isinstance(group, kind)
    assert envs.describe(name, EnvOptions()) == group.spec
    assert code_of(name) is None
    group.close()


def test_it_is_known_in_a_process_that_gets_it_pickled(monkeypatch):
    class Walk(Bandit):
        pass

    sent = pickle.dumps(given_env(name_of(Walk)))
    monkeypatch.setattr(given, "_given", {})
    pickle.loads(sent)
    assert envs.describe("python:Walk", EnvOptions()) == envs.describe("toy_bandit", EnvOptions())


def test_the_later_of_one_name_replaces_the_earlier_and_what_others_can_import_is_named_as_module_and_name():
    for kind in (Bandit, Memory):
        name = name_of(type("Walk", (kind,), {}))
    assert envs.describe(name, EnvOptions()) == envs.describe("toy_memory", EnvOptions())
    with pytest.raises(ValueError, match="'delay'"):
        envs.describe(name_of(lambda delay: Memory(delay=delay)), EnvOptions())
    assert name_of(Bandit) == "sf.envs.toys.single:Bandit"
    assert given_env("sf.envs.toys.single:Bandit") is None


def test_one_that_was_not_given_here_is_asked_for_in_one_sentence():
    with pytest.raises(ValueError, match=r"train\(env=Walk\)"):
        envs.describe("python:Walk", EnvOptions())
    assert code_of("python:Walk") is None  # a file that names it runs nothing
    assert registry._first_asked("python:Walk") is given.GIVEN
