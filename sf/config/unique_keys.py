"""YAML in which no key is twice: YAML itself would take the last and forget the others."""

from __future__ import annotations

from typing import Any

import yaml


class _TwiceError(ValueError):
    """A key is in a mapping twice."""


def parse(text: str, source: str) -> Any:
    """The content of YAML. Raises ValueError, which begins with `source`, for what is no YAML, or has a key twice."""
    try:
        return yaml.load(text, _Loader)
    except _TwiceError as error:
        raise ValueError(f"{source}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date with a month 13, a thousand brackets
        raise ValueError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Raises _TwiceError. The keys of a mapping that is merged in (`<<`) may be there as well: they give way."""
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                places = f"line {lines[name]} and in line {line}" if lines[name] != line else f"line {line} twice"
                raise _TwiceError(f"{key.value} is in {places}: leave one of them out")
            lines[name] = line
        return node
