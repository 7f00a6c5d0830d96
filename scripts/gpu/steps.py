"""The steps of the campaign, in their order: what decides most comes first."""

from __future__ import annotations

from gpu.step import Step

STEPS = (
    Step("check", "gpu.running:check", "does the machine have what training relies on"),
    Step("tests", "gpu.running:tests", "the tests marked gpu"),
    Step("weights", "gpu.weights:run", "weights read are the weights published"),
    Step("runs", "gpu.running:runs", "a run of each kind"),
    Step("survival", "gpu.survival:run", "kill -9 of each process"),
    Step("learn_pong", "gpu.learning:pong", "atari_pong to 18, by the clock"),
    Step("speed_doom", "gpu.speed:doom", "doom_battle: layers and precisions"),
    Step("speed_atari", "gpu.speed:atari", "atari_breakout: layers and precisions"),
    Step("profile", "gpu.profiles:run", "a learner iteration and a policy step"),
    Step("learn_doom", "gpu.learning:doom", "doom_basic to 75"),
    Step("learn_hopper", "gpu.learning:hopper", "Hopper-v5 to 2000"),
    Step("peers", "gpu.speed:peers", "Sample Factory in turn, where it is installed"),
    Step("limits", "gpu.speed:limits", "workers and environments that still gain"),
)
