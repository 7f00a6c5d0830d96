"""Asynchronous PPO in one file: CartPole, with the shared memory, the queues and the loss of this package.

python tiny_appo.py --seed 1                                      # about a minute on two cores

Three functions are the algorithm. Each is the body of a process:

    act    steps environments     asks `infer` for actions, hands trajectories to `learn`
    infer  runs the network       answers `act` by the latest weights
    learn  trains the network     publishes weights for `infer`, gives the memory of trajectories back to `act`

They share memory and send each other indices. No one waits for an optimizer step of `learn`, so a trajectory is a few
versions of the policy old when it is trained on, which V-trace corrects; the number of slots limits its age.
docs/how_it_works.md explains this file and says what `sf-train` adds.
"""

import argparse
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters

from sf.envs import EnvOptions, StepResult, make_group
from sf.learner.loss.ppo import ppo_loss
from sf.learner.loss.terms.term import LossSettings
from sf.learner.loss.vtrace import vtrace
from sf.shared.queues import StopRequested
from sf.shared.requests import Channels
from sf.shared.slots import SlotPool
from sf.shared.weights import SharedWeights, SharedWeightsSpec
from sf.system.arrays import Field, SharedArrays
from sf.system.processes.creator import die_with_creator

NUM_WORKERS = 2
NUM_ENVS = 8  # of each worker; N
ROLLOUT = 32  # steps of a trajectory; T
BATCH = NUM_WORKERS * NUM_ENVS  # trajectories of an iteration; B
NUM_EPOCHS, LEARNING_RATE = 8, 1e-3  # optimizer steps on each batch, and the rate of the first
GAMMA, LAMBDA = 0.99, 0.95
FIELDS = ("obs/obs", "discrete", "log_prob", "value", "policy_version", "reward", "terminated", "valid")  # of a batch
PPO = LossSettings(
    with_ppo_clip=True,
    clip_ratio=0.2,
    rho_bar=1.0,
    with_importance_weight=True,
    clip_value=0.0,  # off
    normalize_advantages=True,
)


class Network(nn.Module):
    """The policy and the critic. They share no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
        self.critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, obs):
        """Returns the distribution of the action and the value [...]. obs: [..., 4]."""
        return Categorical(logits=self.policy(obs)), self.critic(obs).squeeze(-1)


def refresh(network, weights, version):
    """Load the latest weights unless the network has them, which is at `version`. Returns their version."""
    if weights.latest_version != version:
        copy = torch.empty(sum(p.numel() for p in network.parameters()) + 1)  # [W + 1]: the version is the last number
        version = weights.read(copy)
        vector_to_parameters(copy[:-1], network.parameters())
    return version


def make_envs(worker_idx, seed):
    """Returns the N environments of a worker as one group, which writes observations straight into shared memory."""
    return make_group("CartPole-v1", NUM_ENVS, EnvOptions(), seed=seed, first_env_idx=worker_idx * NUM_ENVS)


def act(worker_idx, slots, channel, stats, seed):
    """The rollout worker: fill one slot for each environment with T steps, again and again.

    Consumes   free slots; actions, which `infer` writes into the slots.
    Produces   requests for actions; full slots; the return of the latest episode of each environment.
    Waits for  a message in its inbox: actions are there, or slots are free.
    Unblocked  by `infer`, by `learn`, or by a stop.
    """
    rows = slots.arrays  # by name: [num_slots, T, ...], and observations [num_slots, T+1, ...]
    envs, result = make_envs(worker_idx, seed), StepResult.empty(NUM_ENVS)
    next_obs = np.zeros((NUM_ENVS, 4), np.float32)  # what the next slots begin with
    envs.reset({"obs": list(next_obs)})
    while True:
        while not (taken := slots.take(worker_idx, NUM_ENVS)):
            channel.wait()
        rows["obs/obs"][taken, 0] = next_obs
        channel.tables["slots"][worker_idx] = taken
        for t in range(ROLLOUT):
            channel.ask(worker_idx, row=t)
            while not channel.take(channel.wait()):
                pass  # the message was about free slots
            next_rows = {"obs": [rows["obs/obs"][slot, t + 1] for slot in taken]}
            for episode in envs.step(rows["discrete"][taken, t], rows["continuous"][taken, t], next_rows, result):
                stats["last_return"][worker_idx * NUM_ENVS + episode.actor_idx] = episode.episode_return
            rows["reward"][taken, t] = result.reward
            rows["terminated"][taken, t] = result.terminated
            rows["valid"][taken, t] = result.valid  # False after a truncation, where the action was ignored
        next_obs = rows["obs/obs"][taken, ROLLOUT]  # a copy, since the slots are the learner's from here on
        slots.hand_over(taken)


def infer(rows, channel, weights_spec, seed):
    """The policy worker: answer all waiting requests with one forward pass.

    Consumes   requests; the latest weights.
    Produces   actions, log-probabilities, values and the policy version, in the rows that the requests name; answers.
    Waits for  a request of any rollout worker.
    Unblocked  by `act`, or by a stop.
    """
    torch.manual_seed(seed)
    weights, network, version = SharedWeights.create(weights_spec), Network(), 0
    while True:
        groups = channel.take()  # [G] rollout workers that have asked
        numbers = channel.numbers(groups)
        slots, t, _ = channel.rows(groups, numbers)  # [N of all G]
        version = refresh(network, weights, version)
        with torch.no_grad():
            policy, value = network(torch.from_numpy(rows["obs/obs"][slots, t]))
            action = policy.sample()
            rows["discrete"][slots, t, 0] = action
            rows["log_prob"][slots, t] = policy.log_prob(action)
            rows["value"][slots, t] = value
            rows["policy_version"][slots, t] = version
        channel.answer(groups, numbers)


def learn(slots, weights_spec, stats, env_steps_wanted, seed):
    """The learner: turn full slots into new weights, until it has trained on `env_steps_wanted`.

    Consumes   full slots.
    Produces   weights, one version for each batch; free slots; the lines that are printed.
    Waits for  B full slots.
    Unblocked  by `act`, or by a stop.
    """
    weights, network = SharedWeights.create(weights_spec), Network()
    version = refresh(network, weights, 0)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    env_steps, began = 0, time.time()
    while env_steps < env_steps_wanted:
        taken = []
        while len(taken) < BATCH:
            taken += slots.take(at_most=BATCH - len(taken))
        batch = {name: torch.from_numpy(slots.arrays[name][taken]).transpose(0, 1) for name in FIELDS}  # [T, B, ...]
        slots.give_back(taken)  # before the optimizer steps: `act` fills them meanwhile
        lag = version - batch["policy_version"].float().mean()
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - env_steps / env_steps_wanted)
        for _ in range(NUM_EPOCHS):
            optimizer.zero_grad()
            loss_of(network, batch).backward()
            clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
        version += 1
        weights.publish(parameters_to_vector(network.parameters()).detach(), version)
        env_steps += BATCH * ROLLOUT
        mean_return = stats["last_return"].mean()
        if version % 20 == 0:
            print(f"{env_steps:9,} env steps   mean return {mean_return:5.1f}   lag {lag:.1f}", flush=True)
    print(f"seed {seed}: mean return {mean_return:.1f} after {env_steps:,} env steps in {time.time() - began:.0f} s")


def loss_of(network, batch):
    """Returns the PPO loss (0-dim) of a batch of [T, B, ...], with V-trace targets from the network as it is now."""
    policy, value = network(batch["obs/obs"])  # [T+1, B]; the last value is the bootstrap value
    policy = Categorical(logits=policy.logits[:-1])
    log_prob = policy.log_prob(batch["discrete"][..., 0])  # [T, B]
    targets = vtrace(
        log_rho=log_prob.detach() - batch["log_prob"],
        reward=(1 - GAMMA) * batch["reward"],  # so values are from 0 to 1
        discount=GAMMA * ~batch["terminated"],
        value=value.detach(),
        valid=batch["valid"],
        lambda_=LAMBDA,
    )
    return ppo_loss(
        log_prob=log_prob,
        proximal_log_prob=batch["log_prob"],
        behaviour_log_prob=batch["log_prob"],
        entropy=policy.entropy(),
        advantage=targets.advantage,
        value=value[:-1],
        behaviour_value=batch["value"],
        value_target=targets.vs,
        returns=targets.vs,
        mask=batch["valid"],
        settings=PPO,
        coefficients=(1.0, 0.5, 0.01),  # of policy, value and entropy
    ).loss


def run(body, *args):
    """Run the body of a process until it returns or is asked to stop. The process dies with its parent."""
    die_with_creator()
    if parent_process().is_alive():  # else the parent had died before that took effect
        torch.set_num_threads(1)
        with suppress(StopRequested):
            body(*args)


def main():
    """Allocate what the processes share, start them, and stop all of them when one ends or at Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env_steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()

    # Twice as many slots as environments: `act` fills one half while the other half waits for `learn`.
    sizes = {"groups_per_worker": 1, "slots_per_group": 2 * NUM_ENVS, "actors_per_group": NUM_ENVS}
    channels = Channels.allocate(num_workers=NUM_WORKERS, policy_workers_per_policy=1, **sizes)
    pool = SlotPool.allocate(make_envs(0, flags.seed).spec, ROLLOUT, inboxes=channels.inboxes, **sizes)
    stats = SharedArrays([Field("last_return", (NUM_WORKERS * NUM_ENVS,), np.float32)])
    torch.manual_seed(flags.seed)
    first_weights = parameters_to_vector(Network().parameters()).detach()  # [W]
    weights = SharedWeightsSpec.allocate("cpu", len(first_weights))
    SharedWeights.create(weights).publish(first_weights, version=1)

    bodies = [(act, i, pool.of_worker(), channels.of_worker(i), stats, flags.seed) for i in range(NUM_WORKERS)]
    bodies.append((infer, pool.arrays, channels.of_policy_worker(0), weights, flags.seed))
    bodies.append((learn, pool.of_learner(), weights, stats, flags.env_steps, flags.seed))
    processes = [get_context("spawn").Process(target=run, args=body) for body in bodies]
    on_ctrl_c = signal.signal(signal.SIGINT, signal.SIG_IGN)  # children inherit this: the parent alone heeds Ctrl-C
    for process in processes:
        process.start()
    signal.signal(signal.SIGINT, on_ctrl_c)
    try:
        connection.wait([process.sentinel for process in processes])  # `learn` is done, or one has failed
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    finally:
        for queue in (*channels.inboxes, *channels.requests, *pool.full):
            queue.stop()  # whoever waits for it raises StopRequested
        for process in processes:
            process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":  # worker processes import this file again
    main()
