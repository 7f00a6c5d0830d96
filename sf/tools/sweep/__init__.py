"""`sf-sweep`: every combination of some flags, as runs of their own."""
