"""`sf-play`: a person plays an environment with the keys."""
