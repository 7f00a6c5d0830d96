"""A rollout worker that stands still at the worst moment: it has taken its messages, and not said so yet."""

import os
import signal

from runs import DEVICE, QUEUES

from sf.config import Config
from sf.rollout.worker import rollout_worker
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.shared.requests import WorkerChannel
from sf.storage.run_dir import RunDir

TAKEN_BEFORE = 50  # messages


def stops_itself(reports, args):
    """The first one stops for good, in the place of the first process of this number."""
    num_taken = 0

    def wait(channel):
        nonlocal num_taken
        groups = set(channel.inbox.get_many())
        num_taken += len(groups)
        if args.is_first_start and channel.groups.start == 0 and num_taken > TAKEN_BEFORE:
            while len(groups) < len(channel.groups):
                groups |= set(channel.inbox.get_many())
            os.kill(os.getpid(), signal.SIGSTOP)
        return sorted(groups)

    WorkerChannel.wait = wait
    rollout_worker(reports, args)


def test_a_rollout_worker_that_has_taken_its_messages_and_stands_still_is_replaced(tmp_path):
    config = Config().replace(
        env="toy_identity",
        train_dir=str(tmp_path),
        num_workers=2,
        num_envs_per_worker=2,
        rollout=8,
        batch_size=32,
        encoder_mlp_layers=(8,),
        worker_timeout_s=2.0,
        summaries_every_sec=0.5,
        train_for_seconds=60.0,
        device=DEVICE,
        queues=QUEUES,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    run = Run(
        make_plan(config), run_dir, on_record=lambda record: record["restarts"] > 0, bodies={"rollout": stops_itself}
    )
    assert run.run()["restarts"] == 1
