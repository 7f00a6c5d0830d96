"""The steps of the campaign, in their order: what decides most comes first."""

from __future__ import annotations

from gpu import learning, profiles, running, speed, survival, weights
from gpu.step import Step

STEPS = (
    Step("check", running.check, "does the machine have what training relies on"),
    Step("tests", running.tests, "the tests marked gpu"),
    Step("weights", weights.run, "weights read are the weights published"),
    Step("runs", running.runs, "a run of each kind"),
    Step("survival", survival.run, "kill -9 of each process"),
    Step("learn_pong", learning.pong, "atari_pong to 18, by the clock"),
    Step("speed_doom", speed.doom, "doom_battle: layers and precisions"),
    Step("speed_atari", speed.atari, "atari_breakout: layers and precisions"),
    Step("profile", profiles.run, "a learner iteration and a policy step"),
    Step("learn_doom", learning.doom, "doom_basic to 75"),
    Step("learn_hopper", learning.hopper, "Hopper-v5 to 2000"),
    Step("peers", speed.peers, "Sample Factory in turn, where it is installed"),
    Step("limits", speed.limits, "workers and environments that still gain"),
)
