"""The site as a browser shows it, opened from the disk on a desk and on a telephone.

Layout is compared by facts that do not depend on fonts: nothing is wider than the screen, no row is empty, no word
of code is broken. It needs playwright and a Chromium: CONTRIBUTING.md.
"""

import shutil
import subprocess
import sys

import pytest
from pages import ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("material")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
DESK, TELEPHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    installed = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as session:
        try:
            started = session.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium starts here: {error}")
        yield started
        started.close()


def each_page(site, browser, screen):
    page = browser.new_page(viewport=screen)
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        yield str(path.relative_to(site)), page
    page.close()


@pytest.mark.parametrize("screen", [DESK, TELEPHONE], ids=["desk", "telephone"])
def test_no_page_is_wider_than_the_screen_and_no_word_of_code_is_broken(site, browser, screen):
    names = []
    for name, page in each_page(site, browser, screen):
        assert not page.evaluate(IS_TOO_WIDE), name
        assert page.evaluate(BROKEN_WORDS) == [], name
        names.append(name)
    assert len(names) > 30


@pytest.mark.parametrize("screen", [DESK, TELEPHONE], ids=["desk", "telephone"])
def test_every_row_of_the_flags_shows_flag_and_meaning(site, browser, screen):
    page = browser.new_page(viewport=screen)
    page.goto((site / "flags.html").as_uri())
    rows = page.evaluate(ROWS_OF_FLAGS)
    assert len(rows) > 150
    assert [row for row in rows if not all(row)] == []
    page.close()


def test_the_search_works_from_the_disk(site, browser):
    page = browser.new_page(viewport=DESK)
    page.goto((site / "index.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type("frameskip")
    page.wait_for_selector(".md-search-result__item", timeout=60_000)
    page.close()
