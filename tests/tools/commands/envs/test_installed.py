"""`sf-envs --installed`: what the installed packages register, and how `--env` takes it."""

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import gymnasium as gym
import pytest

from sf import envs
from sf.envs.libraries import gymnasium as gymnasium_ids
from sf.envs.libraries import packages
from sf.envs.libraries.packages import Package
from sf.tools.commands.envs import command, names

REGISTERS = """
import gymnasium
gymnasium.register("{name}-v0", "sf.envs.toys.single:Bandit")
gymnasium.register("{name}-v1", "{module}:Bandit")
from sf.envs.toys.single import Bandit
"""


@pytest.fixture
def _new_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One of the table, one with an entry point, one that cannot be imported, and one that needs Gymnasium."""
    files = {
        "rooms_package": REGISTERS.format(name="Rooms", module="rooms_package")
        + 'gymnasium.register("Other-v0", "rooms_package:Bandit")\n',
        "plug": "import gymnasium\nfrom sf.envs.toys.single import Bandit\n"
        'def register(): gymnasium.register("Plugged-v0", "plug:Bandit")\n',
        "broken_package": "1 / 0",
        "unknown_package": REGISTERS.format(name="Unknown", module="unknown_package"),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    table = (
        Package(r"Rooms-v\d+", "rooms_package", "rooms"),
        Package(r"Broken-v\d+", "broken_package", "broken"),
        Package(r"Missing-v\d+", "package_that_is_missing", "missing"),
    )
    for module in (names, packages):
        monkeypatch.setattr(module, "PACKAGES", table)
    monkeypatch.setattr(names, "users_of_gymnasium", lambda: {"rooms_package", "unknown_package"})
    entry_point = EntryPoint("__root__", "plug:register", "gymnasium.envs")
    monkeypatch.setattr(gymnasium_ids, "_plugins", lambda: [entry_point])
    gymnasium_ids.load_plugins.cache_clear()
    before = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(before)
    gymnasium_ids.load_plugins.cache_clear()
    for name in files:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("_new_packages")
def test_packages_are_listed_with_the_names_that_env_takes():
    found = {each.package: each for each in names.find_installed()}
    assert {"gymnasium", "vizdoom", "ale_py"} <= found.keys()
    assert "package_that_is_missing" not in found
    assert found["rooms_package"].env_ids == ("Rooms-v1", "rooms_package:Other-v0")
    assert found["plug"].env_ids == ("Plugged-v0",)
    assert found["unknown_package"].env_ids == ("unknown_package:Unknown-v1",)
    assert found["broken_package"].env_ids == ()
    assert found["broken_package"].error == "ZeroDivisionError: division by zero"
    assert "atari_pong" in found["ale_py"].env_ids
    assert "doom_basic" in found["vizdoom"].env_ids
    assert "CartPole-v1" in found["gymnasium"].env_ids
    assert "CartPole-v0" not in found["gymnasium"].env_ids


@pytest.mark.usefixtures("_new_packages")
@pytest.mark.parametrize("env", ["Rooms-v1", "rooms_package:Other-v0", "Plugged-v0"])
def test_a_name_of_the_list_is_an_environment(env):
    assert envs.describe(env, envs.EnvOptions()).num_agents == 1


@pytest.mark.usefixtures("_new_packages")
def test_a_pattern_is_a_package_or_a_part_of_a_name(capsys, monkeypatch):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["sf-envs", *args])
        command.main()
        return capsys.readouterr().out

    (broken,) = json.loads(run("--installed", "broken", "--json"))
    assert broken["error"].startswith("ZeroDivisionError")
    assert run("--installed", "other").splitlines()[1].split() == ["rooms_package", "rooms_package:Other-v0"]
    assert run("rooms_package", "--installed", "true").count("rooms_package ") == 2
    assert "division by zero" in run("broken_package", "--installed")
    with pytest.raises(SystemExit):
        run("--installed", "nowhere_at_all")
    assert "no installed package has such an environment" in capsys.readouterr().err
