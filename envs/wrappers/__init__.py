"""Wrappers around environments, named by the flag `env_wrappers`."""
