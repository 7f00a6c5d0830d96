"""`sf-envs`: the environments that `--env` takes, what an agent sees and does in them, and how fast they are."""
