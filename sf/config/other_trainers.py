"""The flags of other trainers that have another name here, for whoever types them.

docs/from_sample_factory.md and docs/from_stable_baselines3.md compare what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FLAGS_OF_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        # Stable-Baselines3
        "n_steps": "rollout",
        "n_envs": "num_envs_per_worker",
        "n_epochs": "num_epochs",
        "clip_range": "ppo_clip_ratio",
        "clip_range_vf": "ppo_clip_value",
        "normalize_advantage": "normalize_advantages",
        "ent_coef": "exploration_loss_coeff",
        "vf_coef": "value_loss_coeff",
        "target_kl": "lr_schedule kl_adaptive",
        "total_timesteps": "train_for_env_steps",
        "n_timesteps": "train_for_env_steps",
        "tensorboard_log": "train_dir",
        "stats_window_size": "stats_avg",
        # CleanRL
        "env_id": "env",
        "num_envs": "num_envs_per_worker",
        "num_steps": "rollout",
        "anneal_lr": "lr_schedule linear",
        "num_minibatches": "num_batches_per_epoch",
        "update_epochs": "num_epochs",
        "norm_adv": "normalize_advantages",
        "clip_coef": "ppo_clip_ratio",
        "exp_name": "experiment",
        "track": "with_wandb",
        "cuda": "device",
        # Sample Factory
        "use_rnn": "core",
        "rnn_type": "core",
        "recurrence": "rollout",
        "serial_mode": "serial",
        "encoder_conv_architecture": "encoder",
        "actor_critic_share_weights": "share_critic",
        "value_bootstrap": "bootstrap_truncated",
        "shuffle_minibatches": "shuffle_steps",
        "experiment_summaries_interval": "summaries_every_sec",
        "heartbeat_interval": "worker_timeout_s",
        "load_checkpoint_kind": "init_from",
        "save_best_metric": "pbt_target_objective",
        "decorrelate_experience_max_seconds": "decorrelate_episodes",
        # RLlib
        "lr": "learning_rate",
        "lambda": "gae_lambda",
        "lambda_": "gae_lambda",
        "clip_param": "ppo_clip_ratio",
        "vf_clip_param": "ppo_clip_value",
        "entropy_coeff": "exploration_loss_coeff",
        "vf_loss_coeff": "value_loss_coeff",
        "grad_clip": "max_grad_norm",
        "train_batch_size": "batch_size",
        "sgd_minibatch_size": "batch_size",
        "minibatch_size": "batch_size",
        "num_sgd_iter": "num_epochs",
        "rollout_fragment_length": "rollout",
        "num_rollout_workers": "num_workers",
        "num_env_runners": "num_workers",
        "num_envs_per_env_runner": "num_envs_per_worker",
        "use_lstm": "core",
        "lstm_cell_size": "rnn_size",
    }
)
