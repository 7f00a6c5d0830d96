"""`sf-psro`: policy-space response oracles. A population grows by best responses to mixtures of itself."""
