"""The names of metrics in TensorBoard and W&B, which group charts by the first part of the name.

metrics.jsonl has names of its own, which are another interface.
"""

from __future__ import annotations

import re

_OF_POLICY = re.compile(r"(policy_\d+)/(.+)")
_KEPT_GROUPS = ("stats/", "eval/", "league/", "video")  # environments' own, evaluations, players, videos

TAGS = {
    "mean_return": "return/mean",
    "std_return": "return/std",
    "min_return": "return/min",
    "max_return": "return/max",
    "true_objective": "return/objective",  # of one policy, by which a population is ranked
    "stats/true_objective": "return/true_objective",
    "start": "run/start",
    "stats_avg": "run/stats_avg",
    "episodes": "episodes/count",
    "episodes_in_mean": "episodes/in_mean",
    "mean_episode_steps": "episodes/steps",
    "mean_episode_frames": "episodes/frames",
    "env_frames_per_second": "throughput/frames_per_second_trained",
    "sampled_env_frames_per_second": "throughput/frames_per_second_sampled",
    "policy/actions_per_batch": "throughput/actions_per_inference_batch",
    "train/num_samples": "throughput/samples_per_minibatch",
    "train/num_choices": "throughput/choices_per_minibatch",
    "train/lag_mean": "lag/mean",
    "train/lag_max": "lag/max",
    "train/masked_share": "lag/masked_share",
    "train/clipped_reward_share": "losses/clipped_reward_share",
    "train/policy_version": "lag/policy_version",
    "train/loss": "losses/total",
    "train/policy_loss": "losses/policy",
    "train/value_loss": "losses/value",
    "train/entropy": "policy/entropy",
    "train/approx_kl": "policy/approx_kl",
    "train/ratio_mean": "policy/ratio_mean",
    "train/clip_fraction": "policy/clip_fraction",
    "train/effective_sample_size": "policy/effective_sample_size",
    "train/advantage_mean": "policy/advantage_mean",
    "train/advantage_stddev": "policy/advantage_stddev",
    "train/explained_variance": "value/explained_variance",
    "train/value_clip_fraction": "value/clip_fraction",
    "train/learning_rate": "optimiser/learning_rate",
    "train/exploration_loss_coeff": "losses/exploration_loss_coeff",
    "train/grad_norm": "optimiser/grad_norm",
    "train/skipped_updates": "optimiser/skipped_updates",
    "train/gradient_share": "throughput/gradient_share",
    "train/num_threads": "throughput/learner_threads",
    "rollout/busy_share": "busy/rollout",
    "policy/busy_share": "busy/policy",
    "player/busy_share": "busy/player",
    "learner/busy_share": "busy/learner",
    "rollout/wait_share": "wait/rollout_for_actions",
    "rollout/slot_wait_share": "wait/rollout_for_slots",
    "policy/wait_share": "wait/policy_for_requests",
    "player/wait_share": "wait/player_for_requests",
    "learner/wait_share": "wait/learner_for_data",
    "cores/in_use_share": "cores/in_use_share",
    "cores/rollout": "cores/rollout",
    "cores/policy": "cores/policy",
    "cores/player": "cores/player",
    "cores/learner": "cores/learner",
    "env_steps": "run/env_steps",
    "env_frames": "run/env_frames",
    "seconds": "run/seconds",
    "restarts": "faults/restarts",
    "lost_episodes": "faults/lost_episodes",
    "lost_frames": "faults/lost_frames",
    "env_faults": "faults/env_faults",
}


def tag(name: str) -> str:
    """The tag of a metric with this name in metrics.jsonl. Those of one policy stay behind `policy_00/` and so on."""
    of_policy = _OF_POLICY.fullmatch(name)
    if of_policy:
        return f"{of_policy[1]}/{tag(of_policy[2])}"
    if name in TAGS:
        return TAGS[name]
    return name if name.startswith(_KEPT_GROUPS) else f"other/{name}"
