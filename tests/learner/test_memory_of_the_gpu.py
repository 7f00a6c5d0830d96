"""A minibatch that does not fit onto the GPU is one sentence, and no reason to try again."""

from types import SimpleNamespace

import pytest
import torch

from sf.config import Config
from sf.learner.worker import _said_where_nothing_fits
from sf.system.processes.child import FinalError

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore")


def fails(has_trained=False, predecessor_env_steps=None):
    config = Config().replace(batch_size=65536, rollout=32)
    args = SimpleNamespace(config=config, predecessor_env_steps=predecessor_env_steps)
    with _said_where_nothing_fits(args, SimpleNamespace(has_trained=has_trained)):
        raise FULL


def test_the_first_iteration_of_a_run_says_what_to_lower():
    with pytest.raises(
        FinalError, match=r"of 65536 samples do not fit .*\(CUDA out of memory.*GiB\): lower --batch_size"
    ):
        fails()


@pytest.mark.parametrize("later", [{"has_trained": True}, {"predecessor_env_steps": 0}])
def test_later_another_program_may_be_in_the_way(later):
    with pytest.raises(torch.OutOfMemoryError):
        fails(**later)
