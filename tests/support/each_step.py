"""A callback of an iteration that calls a function after each optimiser step."""

from sf.learner.callback import IterationCallback


class EachStep(IterationCallback):
    def __init__(self, work):
        self.after_step = work
