"""Reads YAML that anybody may have written: nothing but plain values, and no key twice."""

from __future__ import annotations

from typing import Any

import yaml

_MOST_VALUES = 1_000_000  # of a file


class _RefusedError(ValueError):
    """A key is in a mapping twice, or there are too many values."""


def parse_yaml(text: str, source: str) -> Any:
    """The content of YAML.

    Raises ValueError, which begins with `source`, for what is no YAML, has a key twice, or has aliases that stand for
    more than a million values, as a few lines can.
    """
    try:
        return yaml.load(text, _Loader)
    except _RefusedError as error:
        raise ValueError(f"{source}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date with a month 13, a thousand brackets
        raise ValueError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        """Raises _RefusedError."""
        node = super().get_single_node()
        num_values = _num_values(node, {})
        if num_values > _MOST_VALUES:
            raise _RefusedError(f"its aliases stand for {num_values:,} values: write out those that are needed")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Raises _RefusedError. The keys of a mapping that is merged in (`<<`) may be there as well: they give way."""
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                places = f"line {lines[name]} and in line {line}" if lines[name] != line else f"line {line} twice"
                raise _RefusedError(f"{key.value} is in {places}: leave one of them out")
            lines[name] = line
        return node


def _num_values(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Counts the values in a node, as often as an alias names them. known: counts by the id of a node."""
    key = id(node)
    if key not in known:
        known[key] = 1  # for an alias inside of what it stands for
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        children = [child for pair in parts for child in pair] if isinstance(node, yaml.MappingNode) else parts
        known[key] = 1 + sum(_num_values(child, known) for child in children)
    return known[key]
