"""The virtual environments of the peers. Later calls reuse them."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions, version
from pathlib import Path

PACKAGES = (
    "sample-factory", "stable-baselines3", "pufferlib", "torch", "numpy", "gymnasium", "vizdoom", "ale-py", "mujoco",
    "pettingzoo", "multi-agent-ale-py",
)  # fmt: skip
"""Whose versions are recorded."""


def install(folder: Path, packages: Sequence[str]) -> None:
    """Install these packages from PyPI, and the torch of this interpreter, into a virtual environment.

    pip asks PyPI for nothing where all of them are there. Raises ValueError where it fails.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        (folder.parent / ".gitignore").write_text("*\n")
    torch = version("torch").split("+")[0]  # without the name of the build: pip finds it on any index
    packages = [*packages, f"torch=={torch}"]
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    if subprocess.run(command, check=False).returncode != 0:
        raise ValueError(f"{', '.join(packages)} could not be installed into {folder}: see what pip says above")


def versions(python: Path, packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Those of `packages` that an interpreter has: this one, or that of a virtual environment."""
    folders = sys.path
    if python != Path(sys.executable):
        folders = [str(folder) for folder in python.parent.parent.glob("lib/python*/site-packages")]
    installed = {found.name.lower().replace("_", "-"): found.version for found in distributions(path=folders)}
    return {package: installed[package] for package in packages if package in installed}
