"""A figure of matplotlib as a piece of HTML: its colours are variables of the page's style, light or dark."""

from __future__ import annotations

import io
import re

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from sf.report.style import GOLD, GRID, INK, PALETTE, house_style

# Names of the variables, as report.css has them.
_VARIABLES = {INK: "--ink", GRID: "--grid", GOLD: "--gold", **{color: f"--c{i}" for i, color in enumerate(PALETTE)}}

_LEAKING_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)  # it would hold for the whole page
_GROUP_ID = re.compile(r'<g id="[^"]*"')  # nothing refers to a group, and an id may occur once in a page
_SIZE = re.compile(r' (?:width|height)="[^"]*pt"')  # of the <svg> itself: the page decides
_FONTS = re.compile(r"font-family: [^;\"]*")


def inline_svg(figure: Figure, name: str) -> Markup:
    """An <svg> element as wide as its container.

    name: unique on the page, as the ids in the element begin with it. All text comes from the figure, and matplotlib
    escapes it.
    """
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
