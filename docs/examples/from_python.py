"""Training from Python: the same lines work in a notebook, where the kernel's interrupt ends a run early.

python from_python.py
"""

from sf import make_config, train

if __name__ == "__main__":
    config = make_config(env="CartPole-v1", num_workers=2, train_for_env_steps=20_000, restart_behavior="overwrite")
    for seed in (0, 1):
        summary = train(config.replace(seed=seed, experiment=f"cartpole_{seed}"))
        if summary["stopped_by"] is not None:
            break
        print(f"seed {seed}: mean return {summary['mean_return']:.1f}, {summary['run_dir']}")
