"""Reads and writes demonstrations: Minari data sets on disk, and the rows that a learner trains on."""
