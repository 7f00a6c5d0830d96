"""The commands of make, pip and python on the pages, each as it stands there, by what is already installed here.

The new virtual environments see this one's packages, and pip asks no index: so what a line installs is this project,
and that the packages that it needs besides have the versions that it asks for.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pages import PAGES, ROOT, SHELLS, blocks
from source import copy_source

OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # 0: do not
INSTALLATION = ROOT / "docs" / "installation.md"


def lines(page, program):
    """Of the shell, that begin with it."""
    text = "\n".join(blocks(page, *SHELLS, "zsh"))
    return [line for line in text.replace("\\\n", " ").splitlines() if re.match(rf" *({program})\b", line)]


def without_comment(line):
    return line.partition("  #")[0].strip()


class Shell:
    """Of a user in a clone, whose home is empty."""

    def __init__(self, folder):
        self.clone, self.home = folder / "clone", folder / "home"
        self.clone.mkdir()
        self.home.mkdir()
        copy_source(self.clone)
        self.bin = self.clone / ".venv" / "bin"
        self._environ = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.home), "NO_MKDOCS_2_WARNING": "1"}

    def run(self, line, answer="", **environ):
        done = subprocess.run(
            ["bash", "-euc", line], cwd=self.clone, env=self._environ | OFFLINE | environ,
            input=answer, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def see_packages_of_here(self):
        site_packages = next(self.bin.parent.glob("lib/python*/site-packages"))
        self.run("pip uninstall --yes setuptools")  # Python 3.11 brings one that is too old
        (site_packages / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.mark.long
def test_the_page_of_installation_leads_from_nothing_to_the_program_and_back(tmp_path):
    first, *others = lines(INSTALLATION, "python3?|pip|rm")
    shell = Shell(tmp_path)
    shell.run(first.replace("python3", sys.executable))
    shell.see_packages_of_here()
    for line in others:
        is_build = "python -m build" in line
        flags = " --no-isolation" if is_build else ""  # else it asks the index for setuptools
        said = shell.run(without_comment(line) + flags, "y\n")
        assert "does not provide the extra" not in said
        if line.startswith("pip install") and not is_build:
            installed = shell.run("cd .. && python -c 'import sf; print(sf.__file__)' && command -v sf-train").split()
            assert all(Path(path).is_relative_to(shell.bin.parent) for path in installed), line
    assert not (shell.bin / "sf-train").exists()


@pytest.mark.long
def test_an_extra_of_another_page_is_one(tmp_path):
    shell = Shell(tmp_path)
    shell.run(f"{sys.executable} -m venv .venv")
    shell.see_packages_of_here()
    told = {without_comment(line) for page in PAGES if page != INSTALLATION for line in lines(page, "pip")}
    assert told
    for line in told:
        said = shell.run(f"{line} --dry-run --no-deps")  # what one of them needs may not be installed here
        assert "Would install sf-appo-" in said
        assert "does not provide the extra" not in said


@pytest.fixture
def made(tmp_path):
    """A shell whose clone has the virtual environment that the Makefile makes first, and its programs."""
    shell = Shell(tmp_path)
    shell.bin.mkdir(parents=True)
    (shell.bin.parent / ".installed").touch()  # newer than pyproject.toml
    return shell


def program(shell, name, module, *flags):
    path = shell.bin / name
    words = " ".join([shlex.quote(sys.executable), "-m", module, '"$@"', *flags])
    path.write_text(f"#!/bin/sh\nexec {words}\n")
    path.chmod(0o755)


@pytest.mark.long
def test_make_train_trains_doom_again_and_again(made):
    small = ["--num_workers 1", "--num_envs_per_worker 2", "--rollout 8", "--batch_size 16", "--learner_threads 1"]
    program(made, "sf-train", "sf", *small, "--train_for_env_steps 64")
    (line,) = {without_comment(line) for page in PAGES for line in lines(page, "make train")}
    for _ in range(2):
        assert "score:  sf-eval train_dir/doom_basic" in made.run(line)


def test_make_test_and_make_docs_are_what_runs_this():
    """It would run itself, so here it is only asked what it would do."""
    words = ["make", "--dry-run", "test", "docs"]
    recipe = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for part in ("-m pytest tests", "mypy", "mkdocs build --strict"):
        assert part in recipe
