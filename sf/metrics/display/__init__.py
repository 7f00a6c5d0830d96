"""What a run shows while it trains: a panel, an area of a notebook, lines."""
