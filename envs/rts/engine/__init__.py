"""The engine: state in flat arrays, and compiled functions that change it."""
