"""Steps environments: each process steps several groups and writes the results into slots."""
