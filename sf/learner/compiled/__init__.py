"""The learner's optimiser step as one compiled program."""
