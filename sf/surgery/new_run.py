"""Writes the run that goes on after surgery: a directory with all that the earlier one counted, whole or not at all.

It is made under another name beside its place, and renamed once it is complete. The earlier run stays as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sf.config import Config
from sf.envs.errors import UsageError
from sf.league.players.snapshots import DIRECTORY, beginning_of
from sf.ranks.rendezvous import new_run_id
from sf.storage import best_checkpoint, run_lock, tensor_files
from sf.storage.checkpoint_names import newest_first
from sf.storage.run_dir import NOT_SAVED, RunDir, flags_text, write_atomically
from sf.storage.tensor_files import TensorFile
from sf.surgery.operated import Operated, Request
from sf.surgery.players import operated_player
from sf.surgery.table import report

_ORIGINALS = "before_surgery"  # the folder of the players' own checkpoints, in that of the league
_REFERENCE = "reference_ratings"
_LEFT_BEHIND = ("summary.json", "config.yaml", "run_id", "checkpoints", "videos", "wandb", DIRECTORY)


def write(source: RunDir, out: Path, requests: Sequence[Request], say: Callable[[str], None], is_dry: bool) -> None:
    """Operates on all policies of a run and writes the run `out`; nothing where it is dry.

    requests: what each policy is to become. say: is told what happens to each, before it is written. Raises UsageError
    for what cannot be done or written.
    """
    if out.exists():
        raise UsageError(f"out is {out}, which is there already: name a new directory")
    try:
        with source.locked(), run_lock.held(out, "out"), _whole_or_not_at_all(out, is_dry) as new:
            _operate(source, new, requests, say, is_dry)
            if not is_dry:
                _copy_rest(source, new, requests[0].config)
    except OSError as error:
        raise UsageError(
            f"{error.filename or out} cannot be read or written ({error.strerror}): change that, or name another --out"
        ) from None


@contextmanager
def _whole_or_not_at_all(out: Path, is_dry: bool) -> Iterator[RunDir]:
    beside = out.with_name(f".{out.name[:40]}.surgery")
    if is_dry:
        yield RunDir(beside)
        return
    shutil.rmtree(beside, ignore_errors=True)  # of a surgery that was killed
    try:
        beside.mkdir(parents=True)
        yield RunDir(beside)
        os.sync()
        beside.rename(out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _operate(
    source: RunDir, new: RunDir, requests: Sequence[Request], say: Callable[[str], None], is_dry: bool
) -> None:
    num = len(requests)
    before: dict[int, TensorFile] = {}
    for policy_id, request in enumerate(requests):
        directory = source.checkpoints_of(policy_id, num)
        path, before[policy_id] = _newest(directory)
        operated = Operated(before[policy_id], str(path), request)
        say(report(path, operated))
        if is_dry:
            continue
        folder = new.checkpoints_of(policy_id, num)
        _write(folder / path.name, operated)
        del operated
        best = _best(directory)
        if best is not None:
            _write(folder / best.name, Operated(TensorFile(best), str(best), request))
    if not is_dry:
        _operate_players(source, new, requests, before, say)


def _operate_players(
    source: RunDir, new: RunDir, requests: Sequence[Request], before: dict[int, TensorFile], say: Callable[[str], None]
) -> None:
    """Snapshots, players from elsewhere and the beginnings of exploiters: all that the league has weights of."""
    league = source.path / DIRECTORY
    if not league.is_dir():
        return
    folders = [path for path in league.iterdir() if path.is_dir()]
    for folder in folders:
        shutil.copytree(folder, new.path / DIRECTORY / folder.name)
    originals = new.path / DIRECTORY / f"{_ORIGINALS}_{len(folders) + 1}"
    beginnings = {beginning_of(source.path, policy_id): request for policy_id, request in enumerate(requests)}
    for path in sorted(league.glob("*.safetensors")):
        saved = TensorFile(path)
        if path in beginnings:
            operated: Operated | None = Operated(saved, str(path), beginnings[path])
        else:
            operated = operated_player(saved, str(path), [*before.values()], requests)
        originals.mkdir(parents=True, exist_ok=True)
        if operated is None:
            say(f"{path} has other spaces than the policies had, and stays as it is")
            shutil.copy2(path, new.path / DIRECTORY / path.name)
            continue
        shutil.copy2(path, originals / path.name)
        _write(new.path / DIRECTORY / path.name, operated)


def _newest(directory: Path) -> tuple[Path, TensorFile]:
    """Returns the newest whole checkpoint. Raises UsageError without one."""
    for path in newest_first(directory):
        try:
            return path, TensorFile(path)
        except UsageError:  # noqa: PERF203  one before it may be whole
            continue
    raise UsageError(f"{directory} has no complete checkpoint: name a run that has trained for longer")


def _best(directory: Path) -> Path | None:
    """Returns the best checkpoint, if there is one."""
    scores = {}
    for path in best_checkpoint.best_files(directory):
        with suppress(UsageError):  # another may be whole
            scores[path] = TensorFile(path).state[best_checkpoint.SCORE]
    return max(scores, key=scores.__getitem__, default=None)


def _write(path: Path, operated: Operated) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = operated.tensors()
    tensor_files.write(
        path,
        {name: make for name, (_, make) in tensors.items()},
        {name: like for name, (like, _) in tensors.items()},
        operated.state(),
    )


def _copy_rest(source: RunDir, new: RunDir, config: Config) -> None:
    """The records of the run, and the flags that it goes on with."""
    for path in source.path.iterdir():
        if path.name in _LEFT_BEHIND or path.name.startswith("."):
            continue
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, new.path / path.name)
    flags = {name: value for name, value in config.flat().items() if name not in NOT_SAVED}
    if flags[_REFERENCE] == (source.saved_flags() or {}).get(_REFERENCE):
        # Those ratings are in the record of the league, and the file may be of another environment by now.
        flags[_REFERENCE] = None
    write_atomically(new.config, flags_text(flags).encode())
    write_atomically(new.id, new_run_id().encode())
