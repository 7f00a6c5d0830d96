"""The surgery of players that do not learn, such as snapshots: they play on in the new environment as they did.

They never take a new choice, so that their ratings stay what they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.surgery.axes import Axis
from sf.surgery.operated import Operated, Request
from sf.surgery.subject import Saved, Subject


def operated_player(saved: Saved, name: str, before: Sequence[Saved], requests: Sequence[Request]) -> Operated | None:
    """Returns a player with the spaces that a policy had, after surgery; None if it has those of none of them.

    before: the policies before surgery; requests: what they become. One with the network of the policy gets its new
    network, too; one with a network of its own keeps that. Raises UsageError where it would play otherwise.
    """
    for policy, request in zip(before, requests, strict=True):
        theirs, own = (Subject.of_saved(each, name, request.subject) for each in (policy, saved))
        if _seen(theirs) != _seen(own) or theirs.actions != own.actions:
            continue
        model = request.subject.model if own.model == theirs.model else own.model
        config = request.config.replace(**dataclasses.asdict(model))
        subject = request.subject.with_model(model)
        return Operated(saved, name, request._replace(subject=subject, config=config, new_choice_probability=0.0))
    return None


def _seen(subject: Subject) -> dict[str, Axis]:
    """Returns the axes of what the environment shows."""
    return {key: axis for key, axis in subject.obs.items() if key not in ADDED_FOR_CRITIC}
