"""Results of matches: records, ratings, payoff tables, mixtures of players, tournaments."""
