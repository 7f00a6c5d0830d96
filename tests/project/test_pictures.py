"""What the scripts make that record the pictures of the README."""

import record_display
from rich.text import Text


def test_the_picture_of_the_display_shows_command_and_panel_and_fetches_nothing():
    svg = record_display.picture(Text("7,692 trained"), "sf-train --env doom_battle")
    assert "7,692&#160;trained" in svg
    assert "sf-train" in svg
    assert "url(http" not in svg
    assert "@font-face" not in svg
