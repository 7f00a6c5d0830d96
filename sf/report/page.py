"""`sf-report`: everything about a run on one page, in one HTML file that needs no network."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from sf import cli
from sf.report import extra
from sf.run_dir import write_atomically

if TYPE_CHECKING:
    from sf.report.runs import Run

_MEDIA = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
_LARGEST_VIDEO = 64 * 2**20  # bytes: a third more in the page, and browsers get slow beyond


@dataclass(frozen=True)
class ReportFlags:
    """Which run, and where the page goes."""

    run: tyro.conf.Positional[Path]
    """A run directory. The run may be going on."""

    out: Path | None = None
    """The page. Default: report.html in the run directory."""

    video: Path | None = None
    """An mp4, webm or gif to put into the page. Default: the newest one in the run directory, where there is one."""

    x: Literal["env_frames", "env_steps", "seconds"] = "env_frames"
    """The horizontal axis of the charts."""


def main() -> None:
    """Write the page, say where it is, and end with 0; with 2 after a user's mistake."""
    description = "Make one HTML page of a run. Example: sf-report train_dir/doom_basic"
    flags = cli.parse_flags(ReportFlags, "sf-report", description)
    try:
        extra.require()
        out = report(flags)
    except ValueError as error:
        cli.fail(str(error))
    print(out)


def report(flags: ReportFlags) -> Path:
    """Write the page and return where. Raises ValueError for what the user can mend."""
    from sf.report.runs import load  # noqa: PLC0415

    run = load(flags.run)
    video = flags.video or newest_video(run.directory.path)
    page = render(run, flags.x, data_uri(video) if video else None, time.time())
    out = flags.out or run.directory.path / "report.html"
    try:
        write_atomically(out, page.encode())
    except OSError as error:
        raise ValueError(f"{out} cannot be written ({error.strerror}): name another --out") from None
    return out


def render(run: Run, x: str, video: str | None, now: float) -> str:
    """The page as text. video: a data URI. now: seconds since the epoch."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  of the extra, as all that draws

    from sf.report import charts, facts  # noqa: PLC0415
    from sf.system_info import read_starts  # noqa: PLC0415

    summary = facts.read_summary(run)
    settings = facts.settings(run)
    starts = read_starts(run.directory)
    pages = Environment(loader=PackageLoader("sf.report", ""), autoescape=True, undefined=StrictUndefined)
    return pages.get_template("report.html").render(
        name=run.name,
        env=run.flags["env"],
        directory=str(run.directory.path),
        status=facts.status(run, summary, now),
        figures=facts.key_figures(run, summary),
        video=video,
        sections=charts.sections(run, x),
        population=_population(run),
        changed=[setting for part in settings.values() for setting in part if setting.is_changed],
        settings=settings,
        system=facts.system_rows(starts[-1]) if starts else [],
        num_starts=len(starts),
        made_at=time.strftime("%Y-%m-%d %H:%M", time.localtime(now)),
        num_records=len(run.records),
    )


def newest_video(directory: Path) -> Path | None:
    """The newest video below a run directory that is not too large for a page."""
    videos = [path for path in directory.rglob("*") if path.suffix in _MEDIA and path.is_file()]
    fitting = [path for path in videos if path.stat().st_size <= _LARGEST_VIDEO]
    return max(fitting, key=lambda path: path.stat().st_mtime, default=None)


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


def _population(run: Run) -> dict[str, Any] | None:
    """The picture of the lineage and its sentences; None for a run that does not evolve."""
    from sf.population.lineage import sentences  # noqa: PLC0415
    from sf.population.record import EVENTS, read_events  # noqa: PLC0415
    from sf.report.inline_svg import inline_svg  # noqa: PLC0415
    from sf.report.population import draw, load  # noqa: PLC0415

    directory = run.directory.path
    if not (directory / EVENTS).exists():
        return None
    picture = None
    if run.matching("policy_*/true_objective"):
        picture = inline_svg(draw(load(directory, "true_objective"), "true_objective"), "population")
    return {"svg": picture, "sentences": sentences(read_events(directory))}


if __name__ == "__main__":
    main()
