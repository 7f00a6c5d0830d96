"""Joins the learners of several trainers, each with its own samples, so that they train one policy together."""
