"""The picture of a search: exploitability against env steps, and the payoffs of all players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sf.tools.psro.record import Iteration, SeatIteration, payoff_table, payoffs_by_seat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(title: str, iterations: Sequence[Iteration | SeatIteration]) -> Figure:
    """Save it with `sf.tools.report.style.save`. Payoffs of more than two seats are not drawn."""
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    from sf.tools.report.style import house_style, log_scale, tidy_numbers  # noqa: PLC0415

    with house_style():
        figure = Figure(figsize=(13.0, 3.8), layout="constrained")
        curve, table, shares = figure.subplots(1, 3)
        _draw_exploitability(curve, iterations)
        if any(each.exploitability for each in iterations):
            log_scale(curve)
        tidy_numbers(curve)
        payoffs = _payoffs(iterations)
        largest = max(float(np.abs(payoffs).max()), 1e-9)
        image = table.imshow(payoffs, cmap="RdBu", vmin=-largest, vmax=largest)
        table.set(title="what a row wins from a column", xlabel="iteration", ylabel="iteration")
        figure.colorbar(image, ax=table)
        _draw_mixtures(shares, iterations)
        for axis in (table, shares):
            axis.grid(False)
            for each in (axis.xaxis, axis.yaxis):
                each.set_major_locator(MaxNLocator(integer=True))
        figure.suptitle(title, fontsize=10)
    return figure


def _payoffs(iterations: Sequence[Iteration | SeatIteration]) -> np.ndarray:
    """Returns [K, K] what the player of a row, in the first seat, wins from that of a column; zeros for more seats."""
    shared = [each.payoffs for each in iterations if isinstance(each, Iteration)]
    if shared:
        return payoff_table(shared)
    table = payoffs_by_seat([each.payoffs for each in iterations if isinstance(each, SeatIteration)])
    return table[..., 0] if table.ndim == 3 else np.zeros(table.shape[:2])


def _draw_exploitability(axis: Axes, iterations: Sequence[Iteration | SeatIteration]) -> None:
    known = [(each.env_steps, each.exploitability) for each in iterations if each.exploitability is not None]
    axis.plot([steps for steps, _ in known], [value for _, value in known], marker="o", markersize=3)
    axis.set(title="exploitability of the mixture", xlabel="env steps")
    if not known:
        axis.text(0.5, 0.5, "not known in this game", ha="center", va="center", transform=axis.transAxes)


def _draw_mixtures(axis: Axes, iterations: Sequence[Iteration | SeatIteration]) -> None:
    """A row for each iteration, with the probability of each player in its mixture, seat by seat."""
    num, num_seats = len(iterations), len(iterations[0].populations)
    mixtures = np.zeros((num, num_seats * num))
    for row, each in enumerate(iterations):
        for seat, population in enumerate(each.populations):
            mixtures[row, seat * num : seat * num + row + 1] = [*population.mixture.values()]
    image = axis.imshow(mixtures, cmap="Blues", vmin=0, vmax=1)
    axis.set(title="mixture that an iteration ends with", xlabel="player", ylabel="iteration")
    figure = axis.figure
    assert figure is not None
    figure.colorbar(image, ax=axis)
