"""The engine: state in flat arrays, and compiled functions that change it. It knows nothing of observations or rewards of
a trainer."""
