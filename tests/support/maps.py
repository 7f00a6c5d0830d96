"""The maps of doom_battle come with an extra that there is not for every Python."""

import importlib.util

import pytest

ARE_HERE = importlib.util.find_spec("envpool_assets") is not None


def needed_by(text: str) -> bool:
    """By an environment, or a command."""
    return "doom_battle" in text


def skip_without(text: str) -> None:
    if needed_by(text) and not ARE_HERE:
        pytest.skip("the maps of envpool-assets are not installed")
