"""Defines how every picture of this package looks. Needs matplotlib."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from sf.storage import output_file

if TYPE_CHECKING:
    from markupsafe import Markup

FORMATS = (".png", ".svg", ".pdf")
INK, GRID, GOLD = "#333333", "#dddddd", "#ffd700"
# Okabe and Ito 2008: told apart with every kind of colour vision. Their yellow is left out: it is lost on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("-", "--", "-.")  # beyond the colours

# Names of the variables, as report.css has them.
_VARIABLES = {INK: "--ink", GRID: "--grid", GOLD: "--gold", **{color: f"--c{i}" for i, color in enumerate(PALETTE)}}

_LEAKING_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)  # it would hold for the whole page
_GROUP_ID = re.compile(r'<g id="[^"]*"')  # nothing refers to a group, and an id may occur once in a page
_SIZE = re.compile(r' (?:width|height)="[^"]*pt"')  # of the <svg> itself: the page decides
_FONTS = re.compile(r"font-family: [^;\"]*")

_SETTINGS: dict[Any, Any] = {
    "axes.prop_cycle": cycler(linestyle=_DASHES) * cycler(color=PALETTE),
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,  # letters stay letters: publishers refuse Type 3
    "svg.fonttype": "none",
    "svg.hashsalt": "sf",  # the same picture is the same file
    "text.color": INK,
    "text.parse_math": False,  # names of runs are text, also with a $ in them
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "savefig.dpi": 200,
}
NUM_DASHES = len(_DASHES)
MOST_STYLES = len(PALETTE) * NUM_DASHES  # lines that a reader can tell apart
# Of what DejaVu Sans lacks: those of these that are installed, in this order.
_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "Droid Sans Fallback", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Arial Unicode MS",
    "Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji",
)  # fmt: skip
_LARGEST = 30_000  # pixels of a side; matplotlib draws less than 65,536
_LOG_SUBS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7))  # of a decade: its ticks
_FEWEST_TICKS = 4
_TIMES = (("hours", 7200.0, 3600.0), ("minutes", 120.0, 60.0), ("seconds", 0.0, 1.0))  # name, from, seconds


@contextmanager
def house_style() -> Iterator[None]:
    """Figures that are made and drawn inside look alike. Other settings of matplotlib stay as they are."""
    with mpl.rc_context({**_SETTINGS, "font.family": _families()}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a box stands there, as in a terminal
        yield


@cache
def _families() -> list[str]:
    """matplotlib looks for each character in these, one after the other."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["sans-serif", *(name for name in _FALLBACKS if name in installed)]


def require_format(out: Path, flag: str = "out") -> None:
    """flag: that named the file. Raises ValueError where the name does not end with a format that can be written."""
    if out.suffix not in FORMATS:
        raise ValueError(f"{flag} is {out}: its name must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")


def save(figure: Figure, out: Path, flag: str = "out") -> None:
    """Write a picture in the format that its name ends with. flag: as above. Raises ValueError where it cannot be
    written."""
    metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(out.suffix)
    picture = io.BytesIO()
    with house_style():
        dpi = min(float(mpl.rcParams["savefig.dpi"]), _LARGEST / max(figure.get_size_inches()))
        figure.savefig(picture, format=out.suffix[1:], metadata=metadata, dpi=dpi)
    output_file.write(flag, out, picture.getvalue())


def x_unit(x: str, end: float) -> tuple[str, float]:
    """The label of a horizontal axis that goes up to `end`, and what its values are divided by."""
    if x != "seconds":
        return ("frames" if x == "env_frames" else "env steps"), 1.0
    return next((name, unit) for name, since, unit in _TIMES if end >= since)


def log_scale(axis: Axes) -> None:
    """A vertical axis of factors with plain numbers, after all lines are drawn."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()  # often less than a decade, where a log axis has hardly a number by default
    axis.yaxis.set_major_locator(FixedLocator(_log_ticks(low, high)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter("{x:g}")


def _log_ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between the two: powers of ten, or as many more as make at least four."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    linear = [float(tick) for tick in MaxNLocator(6).tick_values(low, high)]
    of_decades = [[float(f"{sub}e{decade}") for decade in decades for sub in subs] for subs in _LOG_SUBS]
    within = [[tick for tick in ticks if low <= tick <= high] for ticks in (*of_decades, linear)]
    return next((ticks for ticks in within if len(ticks) >= _FEWEST_TICKS), within[-1])


def tidy_numbers(axis: Axes, x: str = "env_steps") -> None:
    """Few ticks: counts such as 500k and 2M, or plain numbers of time. x: the metric of the horizontal axis."""
    is_time = x == "seconds"
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=not is_time))
    axis.xaxis.set_major_formatter("{x:g}" if is_time else EngFormatter(sep=""))


def inline_svg(figure: Figure, name: str) -> Markup:
    """Returns the figure as an <svg> element as wide as its container, in colours of the page: light or dark.

    name: unique on the page, as the ids in the element begin with it. All text comes from the figure, and matplotlib
    escapes it.
    """
    from markupsafe import Markup  # noqa: PLC0415  it comes with Jinja2, which pictures do without

    file = io.StringIO()
    with house_style(), mpl.rc_context({"svg.hashsalt": name}):
        figure.patch.set_visible(False)
        for axis in figure.axes:
            axis.patch.set_visible(False)
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=no_metadata)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = _LEAKING_STYLE.sub("", svg)
    svg = _GROUP_ID.sub("<g", svg)
    svg = _SIZE.sub("", svg, count=2)
    svg = _FONTS.sub("font-family: inherit", svg)
    for color, variable in _VARIABLES.items():
        svg = svg.replace(f": {color}", f": var({variable})")
    return Markup(svg)
