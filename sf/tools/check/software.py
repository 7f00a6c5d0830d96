"""Versions of Python, of packages and of the driver."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
from pathlib import Path

from packaging.requirements import Requirement

from sf.tools.check.probe import Needs, ProbeError

_SHOWN = ("torch", "numpy", "gymnasium", "vizdoom", "ale-py")
_DRIVER = Path("/proc/driver/nvidia/version")


def versions(needs: Needs) -> str:
    """Whether what is installed is what this package asks for, and can be imported."""
    torch = importlib.import_module("torch")
    wrong = [line for requirement in _requirements() if (line := _complaint(requirement))]
    if wrong:
        raise ProbeError("; ".join(wrong))
    for module in ("gymnasium", "vizdoom", "ale_py"):
        importlib.import_module(module)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "a build without CUDA"
    shown = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _SHOWN)
    return f"Python {platform.python_version()}, {shown}; torch is for {build}; {_driver()}"


def _requirements() -> list[Requirement]:
    """The requirements of the package without extras; none where the package is not installed."""
    try:
        lines = importlib.metadata.requires("sf-appo") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    requirements = [Requirement(line) for line in lines]
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]


def _complaint(requirement: Requirement) -> str | None:
    try:
        found = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"{requirement.name} is {found}, and {requirement.specifier} is asked for"


def _driver() -> str:
    words = _text(_DRIVER).partition("\n")[0].split()
    version = next((word for word in words if word[0].isdigit() and "." in word), None)
    return f"NVIDIA driver {version}" if version else "no NVIDIA driver"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
