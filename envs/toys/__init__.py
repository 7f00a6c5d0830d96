"""Toys: tiny environments with a known optimum, and one that fails on demand, for tests of a trainer."""
