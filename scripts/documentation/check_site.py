"""Checks the built site, for `make docs`: no page fetches anything, and none is too wide for a desk or a telephone.

    python scripts/documentation/check_site.py site

Layout is judged by facts that do not depend on fonts: nothing is wider than the screen, no row is empty, no word of
code is broken. This part needs playwright and a Chromium (CONTRIBUTING.md), and is left out where they are not there.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCREENS = {"desk": {"width": 1280, "height": 900}, "telephone": {"width": 390, "height": 844}}
FETCHED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"?https?:[^>]*>")
MOST_MS = 60_000

IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
ROWS_OF_FLAGS = """
[...document.querySelectorAll(".flags tbody tr")].filter(row => row.cells.length === 4).map(row => {
    const cells = [row.cells[0], row.cells[3]]
    return cells.map(cell => {
        const box = cell.getBoundingClientRect()
        const isSeen = box.height > 0 && box.left >= 0 && box.right <= document.documentElement.clientWidth
        return isSeen ? cell.innerText.trim() : ""
    })
})
"""
BROKEN_WORDS = """
[...document.querySelectorAll(".md-content :not(pre) > code")].flatMap(code => {
    const broken = []
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(/[^\\s\\/:_.,=]+/g)) {
            const range = document.createRange()
            range.setStart(walker.currentNode, word.index)
            range.setEnd(walker.currentNode, word.index + word[0].length)
            if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) broken.push(word[0])
        }
    }
    return broken
})
"""


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    pages = sorted(site.rglob("*.html"))
    mistakes = [f"{page}: fetches {found}" for page in pages for found in FETCHED.findall(page.read_text())]
    if len(pages) <= 30 or not (site / "flags.html").exists():
        mistakes.append(f"{site} has {len(pages)} pages, or none of flags")
    browser_mistakes = in_browser(site, pages)
    if browser_mistakes is None:
        print("the layout was not checked: playwright or a Chromium is not there")
    mistakes += browser_mistakes or []
    print("\n".join(mistakes) or f"{len(pages)} pages are in order")
    sys.exit(bool(mistakes))


def in_browser(site: Path, pages: list[Path]) -> list[str] | None:
    """None where there is no browser."""
    try:
        from playwright import sync_api  # noqa: PLC0415  it may not be installed
    except ImportError:
        return None
    installed = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_api.sync_playwright() as session:
        try:
            browser = session.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except sync_api.Error:
            return None
        found = [mistake for name in SCREENS for mistake in on_screen(name, browser, site, pages)]
        browser.close()
    return found


def on_screen(name: str, browser: Any, site: Path, pages: list[Path]) -> Iterator[str]:
    page = browser.new_page(viewport=SCREENS[name])
    for path in pages:
        page.goto(path.as_uri())
        if page.evaluate(IS_TOO_WIDE):
            yield f"{path}: wider than the screen of a {name}"
        if broken := page.evaluate(BROKEN_WORDS):
            yield f"{path}: on a {name}, words of code are broken: {broken}"
    page.goto((site / "flags.html").as_uri())
    rows = page.evaluate(ROWS_OF_FLAGS)
    if len(rows) <= 150 or not all(all(row) for row in rows):
        yield f"flags.html: on a {name}, flag or meaning is missing in {[row for row in rows if not all(row)]}"
    if name == "desk":  # the search works from the disk
        page.goto((site / "index.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("frameskip")
        page.wait_for_selector(".md-search-result__item", timeout=MOST_MS)
    page.close()


if __name__ == "__main__":
    main()
