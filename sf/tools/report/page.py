"""`sf-report`: everything about a run on one page, in one HTML file that needs no network."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from sf.storage import output_file, video_files
from sf.storage.run_dir import RunDir
from sf.storage.text_files import plain
from sf.system.machine import extras
from sf.tools.commands import cli
from sf.tools.report.outputs import warn
from sf.tools.report.runs import load

_MEDIA = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
_OF_WANDB = "wandb"  # the folder that has copies
_SUFFIXES = (".html", ".htm", "")  # not .yaml or .jsonl: naming a file of the run would destroy it
_LARGEST_VIDEO = 64 * 2**20  # bytes; it takes a third more in the page, and browsers get slow with more


@dataclass(frozen=True)
class ReportFlags:
    """Which run, and where the page goes."""

    run: tyro.conf.Positional[Path]
    """A run directory. The run may still be training."""

    out: Path | None = None
    """Page to write. Default: report.html in the run directory."""

    video: Path | None = None
    """An mp4, webm or gif to include. Default: the newest one in the run directory, if any; where
    --video_every_env_steps made it, the newest one of each policy."""

    x: Literal["env_frames", "env_steps", "seconds"] = "env_frames"
    """Horizontal axis of the charts."""


def main() -> None:
    """Write the page and print its path. Ends with 0, 2 after a user's mistake, 130 after Ctrl-C."""
    description = "Write an HTML report of a run. Example: sf-report train_dir/doom_basic"
    flags = cli.parse_flags(ReportFlags, "sf-report", description)
    with cli.exit_status():
        extras.require("plot", "matplotlib", "jinja2", purpose="a report")
        print(report(flags))


def report(flags: ReportFlags) -> Path:
    """Write the page and return its path. Raises ValueError for what the user can fix."""
    from sf.tools.report.render import render  # noqa: PLC0415  it needs the extra

    run = load(flags.run, warn)
    out = flags.out or run.directory.path / "report.html"
    if out.suffix not in _SUFFIXES:
        raise ValueError(f"out is {out}: its name must end with .html")
    output_file.require_writable("out", out, is_named=flags.out is not None)
    videos = [captioned(path) for path in ([flags.video] if flags.video else newest_videos(run.directory))]
    page = render(run, flags.x, videos, time.time())
    output_file.write("out", out, page.encode(errors="backslashreplace"), is_named=flags.out is not None)
    return out


def newest_videos(directory: RunDir) -> list[Path]:
    """The newest video below a run directory that has content and is not too large for a page; or, where training with
    several policies made that one, the newest of each policy, as many as fit. Links count for nothing.
    """
    newest = _newest(
        path for path in directory.path.rglob("*") if _OF_WANDB not in path.relative_to(directory.path).parts
    )
    if newest is None or newest.parent.parent != directory.videos:
        return [newest] if newest else []
    folders = [each for each in sorted(directory.videos.iterdir()) if each.is_dir() and not each.is_symlink()]
    of_policies = [_newest(folder.iterdir()) for folder in folders]
    fitting: list[Path] = []
    for path in of_policies:
        if path and sum(other.stat().st_size for other in (*fitting, path)) <= _LARGEST_VIDEO:
            fitting.append(path)
    return fitting


def _newest(paths: Iterable[Path]) -> Path | None:
    videos = [path for path in paths if path.suffix in _MEDIA and _is_own_file(path) and not path.name.startswith(".")]
    fitting = [path for path in videos if 0 < path.stat().st_size <= _LARGEST_VIDEO]
    return max(fitting, key=lambda path: (path.stat().st_mtime, path.name), default=None)


def _is_own_file(path: Path) -> bool:
    """A link could lead to a video of somebody else, which the page would hand on."""
    return path.is_file() and not path.is_symlink()


def captioned(path: Path) -> tuple[str, str]:
    """The video as a data URI, and what it shows. Raises ValueError as `data_uri`."""
    env_steps = video_files.env_steps(path)
    caption = path.name if env_steps is None else f"after {env_steps:,} env steps"
    of_policy = f"{path.parent.name}, " if path.parent.name.startswith("policy_") else ""
    return data_uri(path), plain(of_policy + caption)


def data_uri(path: Path) -> str:
    """Raises ValueError for a file that is missing, too large, or no video."""
    if path.suffix not in _MEDIA:
        raise ValueError(f"video is {path}: it must be one of {', '.join(_MEDIA)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"video is {path}, which cannot be read ({error.strerror}): name another") from None
    if len(content) > _LARGEST_VIDEO:
        raise ValueError(f"video is {path}, which has {len(content) >> 20} MB: a page takes {_LARGEST_VIDEO >> 20} MB")
    return f"data:{_MEDIA[path.suffix]};base64,{base64.b64encode(content).decode()}"
