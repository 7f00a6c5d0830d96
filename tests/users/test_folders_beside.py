"""Folders `envs/` and `configs/` of the user's own, beside the script: no concern of the package."""

import subprocess
import sys

import pytest

SCRIPT = """
import sf
from sf import envs
from sf.config import presets
from sf.envs import EnvOptions
assert envs.describe("toy_bandit", EnvOptions()).num_agents == 1
assert presets.name_for_env("doom_battle") == "doom_battle"
if {is_package}:
    import envs as own, configs
    assert own.__file__.startswith({folder!r}) and configs.__file__.startswith({folder!r})
"""


@pytest.mark.parametrize("is_package", [False, True], ids=["empty folders", "packages"])
def test_a_script_beside_folders_of_these_names_imports_the_package(is_package, tmp_path) -> None:
    for name in ("envs", "configs"):
        (tmp_path / name).mkdir()
        if is_package:
            (tmp_path / name / "__init__.py").touch()
    (tmp_path / "script.py").write_text(SCRIPT.format(is_package=is_package, folder=str(tmp_path)))
    for command, status in ((["script.py"], 0), (["-m", "sf", "--env", "toy_bandit", "--config", "no_such_preset"], 2)):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == status, done.stderr
        assert ("no_such_preset" in done.stderr) == (status == 2)  # past its imports
