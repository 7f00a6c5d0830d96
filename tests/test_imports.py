"""Imports point one way, and rollout workers stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(p for package in ("sf", "envs") for p in (ROOT / package).rglob("*.py"))


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def belongs(module, package):
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_what_its_layer_may(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "envs":  # of the package it is installed in, it knows nothing
        own = [m for m in imported_modules(path) if belongs(m, "sf") and not belongs(m, "sf.envs") and m != "sf"]
        assert own == []
    forbidden = ["torch"] if parts[0] == "envs" else []
    if parts[0] == "sf" and len(parts) > 2:
        layers = {"rollout", "policy", "learner", "model", "play"} - {parts[1]}
        allowed = {
            "policy": {"model"},
            "learner": {"model"},
            "play": {"model", "rollout"},
            "bench": layers,  # it takes the system apart
        }
        forbidden = [f"sf.{layer}" for layer in layers - allowed.get(parts[1], set())]
        if parts[1] in ("rollout", "population", "report"):
            forbidden.append("torch")
    wrong = [m for m in imported_modules(path) for f in forbidden if belongs(m, f)]
    assert wrong == []


def test_a_rollout_worker_imports_no_torch():
    code = (
        "import sys, sf.rollout.worker, sf.__main__\n"
        "from sf import envs\n"
        "for env in ('CartPole-v1', 'doom_basic', 'atari_pong', 'toy_memory', 'toy_match_rps', 'doom_duel_bots'):\n"
        "    envs.make_group(env, 1, envs.EnvOptions(), seed=0, first_env_idx=0).close()\n"
        "    assert not any(m == 'torch' or m.startswith('torch.') for m in sys.modules), env"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
