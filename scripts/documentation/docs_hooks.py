"""Hooks of mkdocs (mkdocs.yml): what the site shows of the repository outside of docs/.

- `benchmarks/` is part of the site, and its pages may be linked to as on disk.
- `<!-- README: HEADING -->` in a page is replaced by that section of README.md, so no figure stands twice.
- A link whose text is the name of a page's file shows the name that the page has in the navigation.
- A link to any other file of the repository loses its target on the site: there is nothing to open.
- In code, words with hyphens, such as flags, are marked, and long words may be broken where their parts end. The page
  of flags is marked, too. stylesheets/site.css uses these marks.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
README = "README.md"

_titles: dict[str, str] = {}  # of pages, in the navigation
_SHOWN = ("*.md", "*.png", "*.json")  # of benchmarks/
_SECTION = re.compile(r"<!-- README: (.+?) -->")
_FLAGS = "flags.md"
_PREFORMATTED = re.compile(r"(<pre.*?</pre>)", re.DOTALL)
_CODE = re.compile(r"<code>[^<]*</code>")
_WORD = re.compile(r"(?<![^\s>])[^\s<>&]+")  # in plain text
_LONGEST_WORD = 29  # in characters of code; a longer one may be broken, but only after these
_BREAKS = re.compile(r"(?<=[/:_.,=])(?=\w)")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    _note_titles(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    for pattern in _SHOWN:
        for path in sorted((ROOT / "benchmarks").rglob(pattern)):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    written_in = uri if uri.startswith("benchmarks/") else f"docs/{uri}"
    markdown = _relinked(markdown, written_in, uri, files)
    return _SECTION.sub(lambda match: _relinked(_section(match[1]), README, uri, files), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    parts = _PREFORMATTED.split(html)
    parts[::2] = [_CODE.sub(lambda code: _WORD.sub(_marked, code[0]), part) for part in parts[::2]]
    html = "".join(parts)
    return f'<div class="flags">{html}</div>' if page.file.src_uri == _FLAGS else html


def _marked(match: re.Match[str]) -> str:
    word = match[0] if len(match[0]) <= _LONGEST_WORD else _BREAKS.sub("<wbr>", match[0])
    return f'<span class="word">{word}</span>' if "-" in word or "<wbr>" in word else word


def _section(heading: str) -> str:
    """The text of README.md below `## heading`."""
    parts = re.split(r"^## (.+)\n", (ROOT / README).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading].strip()


def _relinked(markdown: str, written_in: str, shown_in: str, files: Files) -> str:
    """Links that are relative to the file `written_in` of the repository, made relative to the page `shown_in`."""

    def relinked(match: re.Match[str]) -> str:
        is_image, text, target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), target))
        if (ROOT / path / README).exists():
            path = f"{path}/{README}"
        uri = "index.md" if path == README else path.removeprefix("docs/")
        if text.endswith(".md"):
            text = _titles.get(uri, text)
        if files.get_file_from_path(uri) is None and (ROOT / path).exists():
            return text
        return f"{is_image}[{text}]({posixpath.relpath(uri, posixpath.dirname(shown_in) or '.')}{anchor})"

    return _LINK.sub(relinked, markdown)


def _note_titles(nav: Any, title: str = "") -> None:
    if isinstance(nav, list):
        for item in nav:
            _note_titles(item)
    elif isinstance(nav, dict):
        for name, item in nav.items():
            _note_titles(item, name)
    elif title:
        _titles[nav] = title
