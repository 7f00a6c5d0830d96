"""What a wheel and a source distribution hold, and that a wheel is enough."""

import configparser
import importlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from pages import ROOT
from source import PACKAGES, copy_source
from test_docker import DOCKERFILES, copied

BUILD = "import sys; from setuptools import build_meta as b; getattr(b, 'build_' + sys.argv[1])(sys.argv[2])"


def build(kind, source, out):
    """The file, built without network."""
    subprocess.run([sys.executable, "-c", BUILD, kind, str(out)], cwd=source, check=True, capture_output=True)
    [path] = out.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from what the Dockerfiles copy, which is enough for it."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    of_cpu, of_cuda = map(copied, DOCKERFILES)
    assert of_cpu == of_cuda
    for path, target in of_cpu.items():
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, source / target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, source / target)
    return build("wheel", source, out)


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(wheel):
    installed_as = {"sf": Path("sf"), "envs": Path("sf/envs"), "configs": Path("sf/configs")}
    expected = {
        str(installed_as[package] / path.relative_to(ROOT / package))
        for package in PACKAGES
        for pattern in ("*.py", "*.yaml", "*.cpp", "py.typed", "report.*", "policies/*/*")
        for path in (ROOT / package).rglob(pattern)
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {"sf/py.typed", "sf/envs/py.typed", "sf/configs/doom_basic.yaml", "sf/envs/doom/launcher.py"} <= held
    assert {
        "sf/storage/zoo/policies/CartPole-v1/policy.safetensors",
        "sf/storage/zoo/policies/CartPole-v1/README.md",
    } <= held


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [info] = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(f"{info}/entry_points.txt").decode())
        assert "MIT License" in archive.read(f"{info}/licenses/LICENSE").decode()
    assert "License-Expression: MIT" in metadata
    assert "# sf-appo" in metadata  # the README
    for target in scripts["console_scripts"].values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_presets_are_read_from_the_wheel_alone(wheel, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from sf.tools.commands import cli\n"
        "from sf.config import presets\n"
        "assert presets.__file__.startswith(sys.argv[1])\n"
        "assert cli.parse(['--env', 'doom_battle']).flat()['env'] == 'doom_battle'\n"
        "assert presets.name_for_env('doom_battle') == 'doom_battle'"
    )
    subprocess.run([sys.executable, "-I", "-c", code, str(wheel)], cwd=tmp_path, check=True, timeout=60)


def test_the_source_distribution_has_all_that_its_tests_and_docs_read(tmp_path_factory):
    source, out = copy_source(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("dist")
    path = build("sdist", source, out)
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = (*PACKAGES, "tests", "docs", "scripts")
    sources = {path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.is_file()}
    assert {str(path.relative_to(ROOT)) for path in sources if "__pycache__" not in path.parts} <= names
    files = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "mkdocs.yml"}
    assert files | {"pyproject.toml"} <= names
    assert not any("__pycache__" in name for name in names)
