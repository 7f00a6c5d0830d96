"""Rewards that a policy gives itself for what it has not seen before."""
