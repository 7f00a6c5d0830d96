"""The search trees of several games, as the loops of trees.cpp grow them: see there for their layout.

A forest knows no rules of a game. It says which node it wants next, is told what is there (who moves, which choices
there are, or that the game is over), and then how good it is. Nodes are numbers from 0, the root; whoever holds the
positions of the game keeps one for each.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import Positions
from sf.system.native import library
from sf.system.native.library import CompilerError

SOURCE = Path(__file__).with_name("trees.cpp")

_FUNCTIONS = {  # what they take, and whether they return a number
    "forest_delete": ("p", False),
    "forest_num_bytes": ("p", True),
    "forest_plant": ("pi", False),
    "forest_order": ("pii", False),
    "forest_num_left": ("pi", True),
    "forest_select": ("ppiip", True),
    "forest_describe": ("pippppppppp", True),
    "forest_evaluate": ("pipppip", False),
    "forest_disturb": ("pipf", False),
    "forest_read": ("pippppppp", True),
    "forest_line": ("piippi", True),
    "forest_depth": ("pipp", True),
    "forest_num_visits": ("pi", True),
    "forest_mover": ("pi", True),
    "forest_num_nodes": ("pi", True),
    "forest_num_edges": ("pi", True),
    "forest_descend": ("piip", True),
}
_TYPES = {"p": c_void_p, "i": c_int64, "f": c_float}


@dataclass(frozen=True)
class SearchRules:
    """Says how trees grow.

    is_gumbel: choose at the root by sequential halving with Gumbel noise, and below it by the improved policy
    (Danihelka et al. 2022); else by PUCT everywhere (Silver et al. 2017). num_players: 1, or 2 with opposite interests.
    discount: of a value, for each move. low, high: what a game of two pays its first player at least and at most.
    is_proving: choices whose outcome is certain are not tried again; for games that pay at their end alone.
    exploration: c of PUCT. virtual_loss: what a simulation on its way counts as, in units of the largest pay.
    num_considered: choices of the root that sequential halving begins with. visit_offset, value_scale: c_visit and
    c_scale of Danihelka et al., equation 8.
    """

    is_gumbel: bool = False
    num_players: int = 2
    discount: float = 1.0
    low: float = -1.0
    high: float = 1.0
    is_proving: bool = False
    exploration: float = 1.5
    virtual_loss: float = 1.0
    num_considered: int = 16
    visit_offset: float = 50.0
    value_scale: float = 0.1


_INTEGERS = ("is_gumbel", "num_players", "num_considered", "is_proving")
_NUMBERS = ("exploration", "virtual_loss", "discount", "low", "high", "visit_offset", "value_scale")


class _Settings(ctypes.Structure):
    """The same, as trees.cpp declares it."""

    _fields_ = (*((name, c_int32) for name in _INTEGERS), *((name, c_float) for name in _NUMBERS))


class Leaves(NamedTuple):
    """New nodes of a forest. Each is [M] int32."""

    game: np.ndarray
    node: np.ndarray
    parent: np.ndarray
    action: np.ndarray


@dataclass(frozen=True)
class Root:
    """Holds what a search knows of K choices, the most promising first. Values are those for whoever moves.

    action, visits: [K] int32. value: [K] float32, NaN of choices that were not tried. weight: [K] float32, PUCT:
    visits; Gumbel: logits of the improved policy. score: [K] float32, the largest is the move to play. certain: [K]
    int8, 1 for a choice that wins, -1 for one that loses whatever follows, else 0. root_value: of the position.
    """

    action: np.ndarray
    visits: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    score: np.ndarray
    certain: np.ndarray
    root_value: float


class Forest:
    """Trees of G games.

    One round: `select` gives new nodes. The caller makes their positions and has them described, again and again while
    chance draws further nodes, and evaluates those that `describe` leaves. Any number of nodes may be on their way.
    """

    def __init__(self, rules: SearchRules, num_games: int) -> None:
        """Raises UsageError where there is no compiler for trees.cpp."""
        self._calls = _calls()
        self._is_gumbel = rules.is_gumbel
        settings = _Settings(*(getattr(rules, name) for name in _INTEGERS + _NUMBERS))
        self._forest = c_void_p(self._calls["forest_new"](ctypes.addressof(settings), num_games))

    def __del__(self) -> None:
        if hasattr(self, "_forest"):
            self._call("delete")

    @property
    def num_bytes(self) -> int:
        """Returns the memory that the trees have."""
        return self._call("num_bytes")

    def plant(self, game: int) -> Leaves:
        """Forget a tree, and begin it with a root, which is returned: it is to be described and evaluated."""
        self._call("plant", game)
        return Leaves(*(np.array([number], np.int32) for number in (game, 0, -1, -1)))

    def order(self, game: int, num_simulations: int) -> None:
        """Let the tree have this many simulations more."""
        self._call("order", game, num_simulations)

    def num_left(self, game: int) -> int:
        """Returns how many simulations are still to begin: none once the outcome of the root is certain."""
        return self._call("num_left", game)

    def select(self, games: np.ndarray, most: int) -> Leaves:
        """Begin up to `most` simulations in each of these games [M] int32. Returns the new nodes that they lead to."""
        found = np.empty((len(games) * most, 4), np.int32)
        num = self._call("select", _at(games), len(games), most, _at(found))
        return Leaves(*found[:num].T)

    def describe(self, leaves: Leaves, positions: Positions) -> tuple[Leaves, np.ndarray]:
        """Say what is at M new nodes. Returns nodes that chance has drawn behind those, which are new in turn, and
        which of the M are to be evaluated, as indices."""
        found = np.ascontiguousarray(np.stack(tuple(leaves), axis=1))
        asked, num_asked = np.empty(len(found), np.int32), c_int64()
        parts = (_at(part) for part in positions)
        sizes = _at(asked), ctypes.addressof(num_asked)
        num_new = self._call("describe", len(found), _at(found), *parts, *sizes)
        return Leaves(*found[:num_new].T), asked[: num_asked.value]

    def evaluate(self, games: np.ndarray, nodes: np.ndarray, logits: np.ndarray, values: np.ndarray) -> None:
        """games, nodes: [M] int32, that are to be evaluated. logits: [M, A] float32, unnormalised log-probabilities of
        all actions. values: [M] float32, for who moves."""
        games, nodes = np.ascontiguousarray(games), np.ascontiguousarray(nodes)
        logits, values = np.ascontiguousarray(logits, np.float32), np.ascontiguousarray(values, np.float32)
        self._call("evaluate", len(games), _at(games), _at(nodes), _at(logits), logits.shape[1], _at(values))

    def mover(self, game: int) -> int:
        """Returns who moves at the root, see `Positions`."""
        return self._call("mover", game)

    def depth(self, games: np.ndarray, nodes: np.ndarray) -> int:
        """Returns the number of steps from the roots to these nodes, all together. games, nodes: [M] int32."""
        games, nodes = np.ascontiguousarray(games), np.ascontiguousarray(nodes)
        return self._call("depth", len(games), _at(games), _at(nodes))

    def num_visits(self, game: int) -> int:
        """Returns how often the root was visited, its own evaluation included."""
        return self._call("num_visits", game)

    def num_choices(self, game: int) -> int:
        """Returns the number K of choices at the root."""
        return self._call("num_edges", game)

    def disturb(self, game: int, noise: np.ndarray, share: float = 0.0) -> None:
        """Explore at an evaluated root. noise: [K] float32. PUCT: a distribution, which makes `share` of the priors;
        Gumbel: what is added to their logarithms."""
        noise = np.ascontiguousarray(noise, np.float32)
        self._call("disturb", game, _at(noise), share)

    def read(self, game: int) -> Root:
        num = self.num_choices(game)
        action, visits = np.empty((2, num), np.int32)
        value, weight, score = np.empty((3, num), np.float32)
        certain, root_value = np.empty(num, np.int8), c_float()
        parts = action, visits, value, weight, score, certain
        self._call("read", game, *(_at(part) for part in parts), ctypes.addressof(root_value))
        return Root(*parts, root_value.value)

    def line(self, game: int, action: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the moves, up to `most`, that are expected after an action at the root, itself the first: the nodes
        where they are made, and the actions, both [K] int32."""
        nodes, actions = np.empty((2, most), np.int32)
        num = self._call("line", game, action, _at(nodes), _at(actions), most)
        return nodes[:num], actions[:num]

    def descend(self, game: int, action: int) -> np.ndarray:
        """Make what follows on an action the root, and forget the rest.

        Returns [num_nodes] the old number of each node that is left; empty if nothing is known behind the action: the
        tree is as it was then, to be planted anew.
        """
        kept = np.empty(self._call("num_nodes", game), np.int32)
        return kept[: self._call("descend", game, action, _at(kept))]

    def _call(self, name: str, *args: Any) -> int:
        found: int = self._calls[f"forest_{name}"](self._forest, *args)
        return found


def _at(array: np.ndarray) -> int:
    address: int = array.ctypes.data
    return address


@functools.cache
def _calls() -> dict[str, Any]:
    try:
        loaded: Any = library.load(None, SOURCE)
    except CompilerError as error:
        raise UsageError(f"a search needs its compiled trees, and {error}") from None
    calls = {"forest_new": loaded.forest_new}
    calls["forest_new"].argtypes, calls["forest_new"].restype = [c_void_p, c_int64], c_void_p
    for name, (parameters, returns) in _FUNCTIONS.items():
        call = calls[name] = loaded[name]
        call.argtypes = [_TYPES[letter] for letter in parameters]
        call.restype = c_int64 if returns else None
    return calls
