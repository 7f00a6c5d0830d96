"""Defines what the updater tells its caller while an iteration trains."""

from __future__ import annotations


class IterationCallback:
    """Is called while an iteration trains. This one does nothing, and lets it go on."""

    def after_step(self) -> None:
        """Called after each optimiser step."""

    def goes_on(self) -> bool:
        """Returns whether the iteration goes on, which all ranks have to answer alike.

        Called before each piece of work, none of which is larger than an optimiser step.
        """
        return True


NO_CALLBACK = IterationCallback()
