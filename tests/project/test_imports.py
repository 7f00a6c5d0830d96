"""Imports point one way, and rollout workers stay light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(
    path
    for package in ("sf", "envs")
    for path in (ROOT / package).rglob("*.py")
    if path.relative_to(ROOT).parts[:2] not in (("sf", "envs"), ("sf", "configs"))  # links
)


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def belongs(module, package):
    return module == package or module.startswith(package + ".")


def rooms():
    """The position of each room in the table of the page, by its name: imports go up."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("| room | what belongs there |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name: position for position, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


ROOMS = rooms()
LIGHT = ("envs", "rollout", "population", "league", "report")  # rooms that need no torch
LOOPS = {"rollout", "policy", "learner"}


def room_of(module):
    """Of a module of sf by its dotted name; None of the package itself. Flags of a component are configuration."""
    parts = module.split(".")[1:]
    if len(parts) > 1 and parts[-1] == "config" and parts[0] != "config":
        return "config"
    return parts[0] if parts and parts[0] in ROOMS else None


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("sf", *parts) if parts[0] == "envs" else parts)


def modules_of_sf(path):
    """Those that a module imports, without the names that it takes from them."""
    names = {name_of(p).removesuffix(".__init__") for p in MODULES}
    return {m for m in imported_modules(path) if m in names and m != "sf"}


def test_every_module_has_a_room():
    assert {name_of(path) for path in MODULES if room_of(name_of(path)) is None} == {"sf.__init__"}
    folders = {path.name for path in (ROOT / "sf").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= ROOMS.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_from_rooms_above_its_own(path):
    own = room_of(name_of(path))
    if own is None:
        return
    used = {module: room_of(module) for module in modules_of_sf(path)}
    may = {room for room in ROOMS if ROOMS[room] <= ROOMS[own]}
    if own not in ("run", "bench"):
        may -= LOOPS - {own}
    if path.parts[-1] == "config.py":  # else whoever reads flags would import the component
        may &= {"envs", "config"}
    assert {module for module, room in used.items() if room not in may} == set()
    if own == "envs":  # nor what the package itself hands out
        assert [m for m in imported_modules(path) if belongs(m, "sf") and not belongs(m, "sf.envs") and m != "sf"] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_that_need_no_torch_import_none(path):
    if room_of(name_of(path)) in LIGHT:
        assert [m for m in imported_modules(path) if belongs(m, "torch")] == []


def test_a_rollout_worker_imports_no_torch():
    code = (
        "import sys, sf.rollout.worker, sf.__main__\n"
        "from sf import envs\n"
        "for env in ('CartPole-v1', 'doom_basic', 'atari_pong', 'toy_memory', 'toy_match_rps', 'doom_duel_bots'):\n"
        "    envs.make_group(env, 1, envs.EnvOptions(), seed=0, first_env_idx=0).close()\n"
        "    assert not any(m == 'torch' or m.startswith('torch.') for m in sys.modules), env"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
