"""Asynchronous PPO in one file: CartPole, with this package's shared memory, queues and loss.

python tiny_appo.py                                               # about a minute on two cores
python tiny_appo.py --env_steps 100000 --seed 1

Three functions are the whole algorithm, and each is the body of a process:

    act    steps environments            asks `infer` for actions, hands trajectories to `learn`
    infer  runs the network              answers `act` with the latest weights
    learn  optimizes the network         publishes weights for `infer`, gives slots back to `act`

None of them waits for the optimizer step of another, so a trajectory is a few versions of the policy old when it is
trained on. V-trace corrects for that, and the number of slots bounds it. Large data stays in shared memory. Queues
carry indices only. docs/how_it_works.md goes through this file, and says what `sf-train` adds.
"""

import argparse
import multiprocessing
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import connection

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters

from sf.arrays import Field, SharedArrays
from sf.envs import StepResult
from sf.envs.groups.gym import GymGroup
from sf.learner.loss.ppo import PPOSettings, ppo_loss
from sf.learner.loss.vtrace import vtrace
from sf.processes.creator import die_with_creator
from sf.queues import StopRequested
from sf.requests import Channels
from sf.slots import SlotPool
from sf.weights import SharedWeights, SharedWeightsSpec

NUM_WORKERS = 2
NUM_ENVS = 8  # of each worker; N
ROLLOUT = 32  # steps of a trajectory; T
BATCH = NUM_WORKERS * NUM_ENVS  # trajectories of an iteration; B
NUM_EPOCHS = 8  # optimizer steps on each batch
LEARNING_RATE = 1e-3
GAMMA, LAMBDA = 0.99, 0.95
PPO = PPOSettings(
    with_ppo_clip=True,
    clip_ratio=0.2,
    rho_bar=1.0,
    with_importance_weight=True,
    clip_value=0.0,  # off
    value_loss_coeff=0.5,
    entropy_coeff=0.01,
    normalize_advantages=True,
)


class Network(nn.Module):
    """The policy and the critic, which share nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
        self.critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, obs):
        """Returns the distribution of the action and the value [...]. obs: [..., 4]."""
        return Categorical(logits=self.policy(obs)), self.critic(obs).squeeze(-1)


def refresh(network, weights, version):
    """Load the latest weights into the network unless it has them already. Returns their version."""
    if weights.latest_version != version:
        copy = torch.empty(sum(p.numel() for p in network.parameters()) + 1)  # the last number is the version
        version = weights.read(copy)
        vector_to_parameters(copy[:-1], network.parameters())
    return version


def make_envs(worker_idx, seed):
    """Returns the N environments of a worker, which write observations straight into rows of slots."""
    envs = [gym.make("CartPole-v1") for _ in range(NUM_ENVS)]
    return GymGroup("CartPole-v1", envs, seed, first_env_idx=worker_idx * NUM_ENVS)


def act(worker_idx, slots, channel, stats, seed):
    """Rollout worker: fill one slot for each environment with T steps, again and again.

    Consumes   free slots; actions, which `infer` writes into the slots.
    Produces   requests for actions; full slots; the return of the latest episode of each environment.
    Waits for  a message in its inbox, which says that actions are there or that slots are free.
    Unblocked  by `infer`, by `learn`, or by a stop.
    """
    rows = slots.arrays  # by name: [num_slots, T, ...], and observations and `first` [num_slots, T+1, ...]
    envs, result = make_envs(worker_idx, seed), StepResult.empty(NUM_ENVS)
    next_obs, next_first = np.zeros((NUM_ENVS, 4), np.float32), np.ones(NUM_ENVS, bool)
    envs.reset({"obs": list(next_obs)})
    while True:
        while not (taken := slots.take(worker_idx, NUM_ENVS)):
            channel.wait()
        rows["obs/obs"][taken, 0], rows["first"][taken, 0] = next_obs, next_first
        channel.tables["slots"][worker_idx] = taken
        for t in range(ROLLOUT):
            channel.ask(worker_idx, row=t)
            while not channel.take(channel.wait()):
                pass  # the message was about a free slot
            discrete, continuous = rows["discrete"][taken, t], rows["continuous"][taken, t]
            next_rows = {"obs": [rows["obs/obs"][slot, t + 1] for slot in taken]}
            for episode in envs.step(discrete, continuous, next_rows, result):
                stats["last_return"][worker_idx * NUM_ENVS + episode.actor_idx] = episode.episode_return
            rows["reward"][taken, t] = result.reward
            rows["terminated"][taken, t] = result.terminated
            rows["valid"][taken, t] = result.valid  # False after a truncation, where the action was ignored
            rows["first"][taken, t + 1] = result.first
        next_obs, next_first = rows["obs/obs"][taken, ROLLOUT], rows["first"][taken, ROLLOUT]  # before they are reused
        slots.hand_over(taken)


def infer(rows, channel, weights_spec, seed):
    """Policy worker: answer all waiting requests with one forward pass.

    Consumes   requests; the latest weights.
    Produces   actions, log-probabilities, values and the policy version, in the rows that the requests name; answers.
    Waits for  a request of any rollout worker.
    Unblocked  by `act`, or by a stop.
    """
    torch.set_num_threads(1)
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
    """Learner: turn full slots into new weights, until it has trained on this many env steps.

    Consumes   full slots.
    Produces   weights, a version for each batch; free slots; what is printed.
    Waits for  B full slots.
    Unblocked  by `act`, or by a stop.
    """
    torch.set_num_threads(1)
    weights, network = SharedWeights.create(weights_spec), Network()
    version = refresh(network, weights, 0)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    env_steps, started_at = 0, time.monotonic()
    while env_steps < env_steps_wanted:
        taken = []
        while len(taken) < BATCH:
            taken += slots.take(at_most=BATCH - len(taken))
        batch = copy_time_major(slots.arrays, taken)
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
        if version % 20 == 0:
            print(f"{env_steps:9,} env steps   mean return {stats['last_return'].mean():5.1f}   lag {lag:.1f}", flush=True)
    seconds = time.monotonic() - started_at
    print(f"seed {seed}: mean return {stats['last_return'].mean():.1f} after {env_steps:,} env steps in {seconds:.0f} s")


def copy_time_major(rows, slots):
    """Returns the slots as tensors by name, each [T, B, ...], and observations [T+1, B, ...]."""
    names = ("obs/obs", "discrete", "log_prob", "value", "policy_version", "reward", "terminated", "valid")
    return {name: torch.from_numpy(rows[name][slots]).transpose(0, 1) for name in names}


def loss_of(network, batch):
    """Returns the PPO loss of a batch (0-dim), with V-trace targets from the network as it is now."""
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
        mask=batch["valid"],
        settings=PPO,
    ).loss


def run(body, *args):
    """Run the body of a process until it returns or is asked to stop. It ends with its parent, however that ends."""
    die_with_creator()
    if multiprocessing.parent_process().is_alive():  # else the parent had died before that took effect
        with suppress(StopRequested):
            body(*args)


def main():
    """Allocate what the processes share, start them, and stop all of them when one ends or at Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env_steps", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()

    # Twice as many slots as environments: a worker fills one half while the other half waits for `learn`.
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
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run, args=body) for body in bodies]
    on_ctrl_c = signal.signal(signal.SIGINT, signal.SIG_IGN)  # children inherit this: Ctrl-C is for the parent
    for process in processes:
        process.start()
    signal.signal(signal.SIGINT, on_ctrl_c)
    try:
        connection.wait([process.sentinel for process in processes])  # `learn` is done, or one has failed
    except KeyboardInterrupt:
        print("stopped by Ctrl-C")
    finally:
        for queue in (*channels.inboxes, *channels.requests, *pool.full):
            queue.stop()
        for process in processes:
            process.join()
    sys.exit(max(abs(process.exitcode) for process in processes))


if __name__ == "__main__":  # worker processes import this file again
    main()
