"""Imports point one way, rollout workers stay light, and the page on the architecture says what each room is for."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LOOPS = {"rollout", "policy", "learner"}
LOOPS_ARE_RUN_BY = ("sf.run", "sf.tools.bench")
NEED_NO_TORCH = ("sf.envs", "sf.rollout", "sf.league.population", "sf.tools.report")  # nor the modules of sf.league


def table():
    """Returns the rooms in the order of the page, with what it says of each: imports go up."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.partition("| room | what it does |\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", rows, re.MULTILINE))


def modules():
    """Returns the path of each module by its dotted name. sf/envs and sf/configs are links."""
    paths = [p for package in ("sf", "envs") for p in (ROOT / package).rglob("*.py")]
    parts = {p: p.relative_to(ROOT).with_suffix("").parts for p in paths}
    return {
        ".".join(("sf", *of) if of[0] == "envs" else of).removesuffix(".__init__"): path
        for path, of in parts.items()
        if of[:2] not in (("sf", "envs"), ("sf", "configs"))
    }


def imports_of(path):
    """Yields the dotted names that a module imports, at its top and inside of functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def belongs(module, *packages):
    return any(module == package or module.startswith(package + ".") for package in packages)


def room_of(module):
    return module.split(".")[1]


ROOMS = table()
MODULES = modules()
# Pairs of a module and a name that it imports. sf/__init__.py, which hands out names of many rooms, is in none.
IMPORTS = [(module, name) for module in MODULES if module != "sf" for name in sorted(set(imports_of(MODULES[module])))]
BETWEEN_MODULES = [(module, name) for module, name in IMPORTS if name in MODULES and name != "sf"]


def require_none(offenders):
    assert not offenders, "\n".join(f"{module} imports {name}" for module, name in offenders)


def test_the_page_says_of_each_room_what_its_docstring_says():
    entries = [path for path in (ROOT / "sf").iterdir() if not path.name.startswith(("__pycache__", "__init__"))]
    found = {path.name: path / "__init__.py" for path in entries if path.is_dir()}
    found |= {path.stem: path for path in entries if path.suffix == ".py"}
    assert {name: first_sentence(path) for name, path in found.items()} == ROOMS


def first_sentence(path):
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.split(r"(?<=\.)\s", " ".join(docstring.split()))[0]


def test_modules_import_only_from_rooms_above_their_own():
    order = list(ROOMS)
    position = {module: order.index(room_of(module)) for module in MODULES if module != "sf"}
    require_none([(module, name) for module, name in BETWEEN_MODULES if position[name] > position[module]])


def test_rollout_policy_and_learner_are_imported_by_the_run_and_the_benchmarks_alone():
    used = [(module, name) for module, name in BETWEEN_MODULES if room_of(name) in LOOPS - {room_of(module)}]
    assert used
    require_none([(module, name) for module, name in used if not belongs(module, *LOOPS_ARE_RUN_BY)])


def test_environments_import_nothing_else_of_the_package():  # nor what sf/__init__.py hands out
    of_envs = [(module, name) for module, name in IMPORTS if belongs(module, "sf.envs") and name != "sf"]
    require_none([(module, name) for module, name in of_envs if belongs(name, "sf") and not belongs(name, "sf.envs")])


def test_flags_import_only_environments_and_configuration():  # else whoever reads flags would import the component
    of_flags = [(module, name) for module, name in BETWEEN_MODULES if belongs(module, "sf.config.flags")]
    assert of_flags
    require_none([(module, name) for module, name in of_flags if room_of(name) not in ("envs", "config")])


def test_rooms_that_need_no_torch_import_none():
    light = {module for module in MODULES if belongs(module, *NEED_NO_TORCH)}
    light |= {module for module, path in MODULES.items() if path.parent == ROOT / "sf" / "league"}
    require_none([(module, name) for module, name in IMPORTS if module in light and belongs(name, "torch")])


def test_a_rollout_worker_imports_no_torch():
    code = (
        "import sys, sf.rollout.worker, sf.__main__\n"
        "from sf import envs\n"
        "for env in ('CartPole-v1', 'doom_basic', 'atari_pong', 'toy_memory', 'toy_match_rps', 'doom_duel_bots'):\n"
        "    envs.make_group(env, 1, envs.EnvOptions(), seed=0, first_env_idx=0).close()\n"
        "    assert not any(m == 'torch' or m.startswith('torch.') for m in sys.modules), env"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
