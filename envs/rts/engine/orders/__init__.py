"""Orders of single units, which last many ticks."""
