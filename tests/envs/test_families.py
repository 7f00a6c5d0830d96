"""The table of families: what each record promises, and that a new one needs nothing else."""

import sys

import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions, registry
from sf.envs.options import EnvOptions as Options
from sf.envs.options import SharedOptions
from sf.envs.teams import TeamOptions
from sf.tools.commands.envs.descriptions import describe
from sf.tools.commands.envs.names import find

STRATEGY = """
from sf.envs.family import Entry, Family

def find(env_id):
    import strategy_engine  # what is heavy
    made = strategy_engine.entry()
    return Entry(made.describe, made.make_group) if env_id == "strategy_small" else None

FAMILY = Family(
    name="strategy",
    about="small maps, little time",
    pattern=r"strategy_[a-z]+",
    find=find,
    env_ids=lambda: ["strategy_small"],
)
"""
ENGINE = """
from sf.envs.entries import entry_of_envs
from sf.envs.toys.single import Identity

def entry():
    return entry_of_envs(Identity)
"""


@pytest.fixture
def strategy(tmp_path, monkeypatch):
    """The record of a family whose modules lie in a folder of their own."""
    (tmp_path / "strategy.py").write_text(STRATEGY)
    (tmp_path / "strategy_engine.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(tmp_path)
    import strategy  # noqa: PLC0415

    yield strategy.FAMILY
    for name in ("strategy", "strategy_engine"):
        sys.modules.pop(name, None)


def test_a_family_is_a_record_and_a_line_of_the_table(strategy, monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (strategy, *registry.FAMILIES))
    envs.describe("toy_identity", EnvOptions())
    assert "strategy_engine" not in sys.modules  # it is imported for its own names only
    assert find("strategy") == find(None, "strategy") == ["strategy_small"]
    assert describe("strategy_small", EnvOptions()).spec == envs.describe("toy_identity", EnvOptions())
    _, steps = play(envs.make_group("strategy_small", 2, EnvOptions(), seed=0, first_env_idx=0), 8)
    assert steps[-1].result.terminated.all()
    with pytest.raises(ValueError, match="did you mean strategy_small"):
        envs.describe("strategy_smal", EnvOptions())


def test_the_flags_of_every_family_are_part_of_the_options():
    own = [family.options for family in registry.FAMILIES if family.options is not None]
    assert set(Options.__bases__) == {SharedOptions, TeamOptions, *own}


def test_no_name_is_of_two_families_and_all_look_as_the_record_says():
    names = [family.name for family in registry.FAMILIES]
    assert len(names) == len(set(names))
    for family in registry.FAMILIES:
        assert family.about
        for env_id in family.listed(family.env_ids()) if family.env_ids else ():
            assert family.may_have(env_id)
