"""The page of a run: what goes into report.html, with report.css and report.js inside it. Needs the extra `plot`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sf.league import record
from sf.league.population.record import EVENTS, sentences
from sf.league.ratings import Rating
from sf.league.reference import described
from sf.league.standings import standings
from sf.metrics.system_info import read_starts
from sf.storage.text_files import plain
from sf.tools.report import charts, facts, population
from sf.tools.report.league.figure import draw as draw_league
from sf.tools.report.runs import Run
from sf.tools.report.style import inline_svg

_OBJECTIVE = "true_objective"  # by which policies are ranked


def render(run: Run, x: str, videos: Sequence[tuple[str, str]], now: float) -> str:
    """The page as text. videos: a data URI and a caption each. now: seconds since the epoch."""
    summary = facts.read_summary(run)
    settings = facts.settings(run)
    starts = read_starts(run.directory)
    templates = Environment(loader=PackageLoader("sf.tools.report", ""), autoescape=True, undefined=StrictUndefined)
    return templates.get_template("report.html").render(
        name=run.name,
        env=plain(run.flags["env"]),
        directory=plain(str(run.directory.path)),
        status=facts.status(run, summary, now),
        figures=facts.key_figures(run, summary),
        videos=videos,
        sections=charts.sections(run, x),
        population=_population(run),
        league=_league(run),
        changed=[setting for part in settings.values() for setting in part if setting.is_changed],
        settings=settings,
        system=facts.system_rows(starts[-1]) if starts else [],
        num_starts=len(starts),
        made_at=time.strftime("%Y-%m-%d %H:%M", time.localtime(now)),
        num_records=len(run.records),
    )


def _population(run: Run) -> dict[str, Any] | None:
    """The picture of the lineage and its sentences; None for a run that does not evolve."""
    directory = run.directory.path
    if not (directory / EVENTS).exists():
        return None
    evolution = population.load(directory, _OBJECTIVE)
    picture = inline_svg(population.draw(evolution, _OBJECTIVE), "population") if evolution.has_objective else None
    return {"svg": picture, "sentences": sentences(evolution.events)}


def _league(run: Run) -> dict[str, Any] | None:
    """The picture of the league, and a row for each player; None for a run without matches against players that do not
    learn. Raises ValueError where its record is damaged."""
    path = run.directory.path / record.NAME
    rows = record.read(path) if path.is_file() else []
    if not any(isinstance(row, record.Match) for row in rows):
        return None
    result = standings(rows)
    players = [
        (plain(player.name), player.num_matches, player.win_rate.mean, _with_interval(player.rating))
        for player in result.players
        if player.win_rate is not None
    ]
    return {
        "svg": inline_svg(draw_league("", result), "league"),
        "held": plain(described(result.held)),
        "players": players,
    }


def _with_interval(rating: Rating) -> str:
    held = rating.std == 0
    return f"{rating.mean:,.0f} ({'held' if held else f'{rating.low:,.0f} to {rating.high:,.0f}'})"
