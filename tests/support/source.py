"""What a source distribution is made of, in a folder of its own."""

import shutil
from pathlib import Path

from pages import ROOT

PACKAGES = ("sf", "envs", "configs")


def copy_source(folder: Path) -> Path:
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for name in (*PACKAGES, "tests", "docs", "scripts"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
