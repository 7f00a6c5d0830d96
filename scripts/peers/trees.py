"""This project as it is, and as it was at other commits: each in a folder of its own, a worktree of git."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TRAINS = ("sf", "envs", "configs")  # what decides how a run learns
PROGRAM = "sf/__main__.py"


@dataclass(frozen=True)
class Tree:
    """A state of this project."""

    folder: Path  # where it is, or will be
    commit: str  # the last that changed what trains, with a digest of the changes since then, where there are any
    is_working_tree: bool

    def make(self) -> None:
        """Checks the commit out, where that has not been done. Raises ValueError where git cannot."""
        if self.is_working_tree or (self.folder / "sf").exists():
            return
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        _git("worktree", "add", "--quiet", "--force", "--detach", str(self.folder), self.commit)

    def require_unchanged(self) -> None:
        """Raises ValueError where the working tree is not what it was."""
        if self.is_working_tree and (now := state_of_working_tree()) != self.commit:
            raise ValueError(
                f"the working tree was {self.commit} and is {now}: start again, or name a commit with --own"
            )


def tree_of(name: str, cache: Path) -> Tree:
    """The working tree for "tree", else a commit. Raises ValueError where git knows no such commit."""
    if name == "tree":
        return Tree(REPOSITORY, state_of_working_tree(), is_working_tree=True)
    try:
        commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ValueError:
        raise ValueError(
            f"own has {name}: there is no such commit here; name one, or tree for the files as they are"
        ) from None
    if not _git("ls-tree", "--name-only", commit, "--", PROGRAM):
        raise ValueError(f"own has {name}: it is from before {PROGRAM}, with which a run starts; name a later commit")
    commit = _last_that_trains_otherwise(commit)
    return Tree(cache.resolve() / commit, commit, is_working_tree=False)


def _last_that_trains_otherwise(commit: str) -> str:
    """The last commit up to this one that changed what trains: results of both are the same."""
    return _git("log", "-1", "--format=%h", "--abbrev=7", commit, "--", *TRAINS)


def state_of_working_tree() -> str:
    """The last commit that changed the folders that train, with a digest of what is different there."""
    commit = _last_that_trains_otherwise("HEAD")
    changes = hashlib.sha256(_git("diff", "HEAD", "--binary", "--", *TRAINS).encode())
    for name in _git("ls-files", "--others", "--exclude-standard", "-z", "--", *TRAINS).split("\0"):
        if name:
            changes.update(name.encode() + (REPOSITORY / name).read_bytes())
    is_clean = changes.digest() == hashlib.sha256(b"").digest()
    return commit if is_clean else f"{commit}+{changes.hexdigest()[:7]}"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(REPOSITORY), *words], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        raise ValueError(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
