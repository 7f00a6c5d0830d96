"""What the pages of the documentation consist of, as far as tests ask for it."""

import re
import shlex
from functools import cache
from itertools import groupby
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]
SHELLS = ("", "bash", "sh", "shell", "console")

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_OPERATORS = set("();<>|&")
_PROGRAM = re.compile(r"sf-[a-z]+|make|python3?|pip")
_VARIABLE = re.compile(r"\$\{?\w+\}?")  # of the shell


@cache
def _tokens(page: Path) -> list[Token]:
    return _MARKDOWN.parse(page.read_text())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    """The code blocks, fenced with one of the languages; "" stands for fenced without one, and for indented."""
    return [t.content for t in _tokens(page) if t.type in ("fence", "code_block") and t.info.split(" ")[0] in languages]


def commands(page: Path) -> list[list[str]]:
    """Program and arguments of every command that may be ours, without what stands before it or is piped to.

    A variable of the shell is 1.
    """
    found = []
    for block in blocks(page, *SHELLS):
        for line in block.replace("\\\n", " ").splitlines():
            if not _PROGRAM.search(line):
                continue
            lexer = shlex.shlex(_VARIABLE.sub("1", line), posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                all_words = list(lexer)
            except ValueError as error:
                raise ValueError(f"{name_of(page)}: {line}: {error}") from None
            for _, group in groupby(all_words, key=lambda word: set(word) <= _OPERATORS):
                words = [*group]
                starts = [i for i, word in enumerate(words) if _PROGRAM.fullmatch(Path(word).name)]
                if starts and words[0] != "cd":  # a folder may be called like a program
                    found.append([Path(words[starts[0]]).name, *words[starts[0] + 1 :]])
    return found


def inline_code(page: Path) -> list[str]:
    return [token.content for token in _inlines(page) if token.type == "code_inline"]


def links(page: Path) -> list[str]:
    """Targets of links and images."""
    targets = [token.attrGet("href") or token.attrGet("src") for token in _inlines(page)]
    return [str(target) for target in targets if target]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub and the site make them."""
    tokens = _tokens(page)
    headings = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "heading_open"]
    texts = ["".join(child.content for child in heading.children or []) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in texts}


def _inlines(page: Path) -> list[Token]:
    return [child for token in _tokens(page) for child in token.children or []]
