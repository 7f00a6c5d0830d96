"""Rates players by the results of their matches, and decides who meets whom and how a population evolves."""
