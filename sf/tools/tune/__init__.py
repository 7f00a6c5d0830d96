"""A search over flags by Optuna: each trial is one run of sf-train, or one for each seed."""
