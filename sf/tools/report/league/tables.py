"""The tables of `sf-league` in the terminal: each fits into 80 columns where names are short."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sf.league.reference import described
from sf.league.standings import Mean, Standing, Standings
from sf.metrics.readable import number

_MOST_COLUMNS = 12  # of the table of win rates
_NAME_WIDTH = 20  # that a name has at least, if it is as long


def print_standings(console: Console, title: str, result: Standings) -> None:
    num = len(result.players)
    _say(console, f"{title}: {num} player{'' if num == 1 else 's'}")
    console.print(_scores(result))
    console.print(_ratings(result))
    _say(console, f"rating: Elo, and its 95 % interval; {described(result.held)}")
    if "Nash\nskill" in _columns_of_what_is_known(result):
        _say(console, "Nash skill: what a match against the Nash mixture brings, in wins minus losses")
    shown = _opponents(result)
    if len(shown) <= _MOST_COLUMNS:
        console.print(_win_rates(result, shown))
    else:
        _say(console, f"The win rates of {len(shown)} players against each other are in --json and --png.")
    for sentence in result.missing:
        _say(console, sentence)


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, emoji=False)


def _scores(result: Standings) -> Table:
    table = _table(result, "matches", "mean\nscore", "95 %", "win\nrate", "95 %")
    for row, player in enumerate(result.players):
        table.add_row(
            str(row),
            Text(player.name),
            f"{player.num_matches:,}",
            *_mean_cells(player.score, number),
            *_mean_cells(player.win_rate, "{:.0%}".format),
        )
    return table


def _ratings(result: Standings) -> Table:
    known = _columns_of_what_is_known(result)
    table = _table(result, "rating", "95 %", *known)
    for row, player in enumerate(result.players):
        table.add_row(
            str(row),
            Text(player.name),
            f"{player.rating.mean:,.0f}",
            "held" if player.rating.std == 0 else f"{player.rating.low:,.0f} to {player.rating.high:,.0f}",
            *(cell(player) for cell in known.values()),
        )
    return table


def _win_rates(result: Standings, columns: list[int]) -> Table:
    table = _table(result, *map(str, columns))
    table.title, table.title_justify = "win rate of a row against a column (matches)", "left"
    rates, num = result.payoffs.win_rate, result.payoffs.num_matches
    for row, player in enumerate(result.players):
        cells = ["-" if np.isnan(rates[row, p]) else f"{rates[row, p]:.0%} ({num[row, p]})" for p in columns]
        table.add_row(str(row), Text(player.name), *cells)
    return table


def _table(result: Standings, *headings: str) -> Table:
    """Its first two columns are the number and the name of a player."""
    table = Table("", box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    longest = max(len(player.name) for player in result.players)
    table.add_column("player", overflow="fold", min_width=min(_NAME_WIDTH, longest))
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _mean_cells(mean: Mean | None, form: Callable[[float], str]) -> tuple[str, str]:
    if mean is None:
        return "-", "-"
    interval = "-" if mean.low is None or mean.high is None else f"{form(mean.low)} to {form(mean.high)}"
    return form(mean.mean), interval


def _columns_of_what_is_known(result: Standings) -> dict[str, Callable[[Standing], str]]:
    """The text of a player's cell, by heading, of what is known of all players."""
    cells: dict[str, tuple[str, Callable[[Standing], str]]] = {
        "open-\nskill": ("openskill", lambda player: f"{player.openskill.mean:,.0f}" if player.openskill else "-"),
        "Nash\nshare": ("nash_share", lambda player: f"{player.nash_share:.0%}"),
        "Nash\nskill": ("nash_skill", lambda player: f"{player.nash_skill:.2f}"),
        "alpha-\nrank": ("alpharank", lambda player: f"{player.alpharank:.0%}"),
    }
    return {
        heading: cell
        for heading, (name, cell) in cells.items()
        if all(getattr(player, name) is not None for player in result.players)
    }


def _opponents(result: Standings) -> list[int]:
    """The columns: everybody; in a run, whose snapshots never meet each other, the policies that learn."""
    everybody = range(len(result.players))
    learning = [p for p in everybody if result.players[p].name in result.curves]
    return learning if learning and len(everybody) > _MOST_COLUMNS else [*everybody]
