"""The flags that campaigns share, and what they print at the end."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from faults.kinds.fault import Fault
from faults.outcomes import Results, sentences, table
from recording import json_file
from rich.console import Console

_WIDTH = 150


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Has the flags of every campaign. A campaign may add its own."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--minutes", type=_above_0(float), default=30.0, help="no new fault after that")
    found.add_argument("--faults", type=_above_0(int), default=10**9, help="or after this many")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--only", nargs="+", metavar="WORD", help="faults with one of these words in their name")
    found.add_argument("--keep", type=Path, help="write runs and their output here, and keep them")
    found.add_argument("--json", type=Path, help="write the result here, too, as it comes")
    found.add_argument("--markdown", type=Path, metavar="JSON", help="print an earlier result, and end")
    return found


def _above_0(kind: type[int] | type[float]) -> Callable[[str], float]:
    def parsed(text: str) -> float:
        if not kind(text) > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return kind(text)

    parsed.__name__ = kind.__name__  # for argparse, which names it where the text is no number
    return parsed


def begin(args: argparse.Namespace, faults: Sequence[Fault]) -> list[Fault]:
    """Print an earlier result and exit where --markdown names one. Else check --json, let SIGTERM interrupt the
    campaign, and return the faults that --only leaves."""
    if args.markdown:
        results = Results.read(args.markdown)
        print("   ", shlex.join(["python", *results.facts.get("command", [])]), end="\n\n")
        _print(results, faults)
        sys.exit()
    json_file.require_writable(args.json, is_new=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return [fault for fault in faults if not args.only or any(word in fault.name for word in args.only)]


def end(results: Results, faults: Sequence[Fault]) -> None:
    """Print the results and exit: with status 1 where a promise was broken, or nothing was tried."""
    _print(results, faults)
    sys.exit(not results.outcomes or results.num_recovered < len(results.outcomes))


def _print(results: Results, faults: Sequence[Fault]) -> None:
    print("\n".join(sentences(results)))
    Console(width=_WIDTH).print(table(results, [fault.name for fault in faults]), highlight=False)
