"""How any process of this package begins, is asked to stop, and ends."""
