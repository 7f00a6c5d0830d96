"""Steps environments: one process steps several groups and writes what they give into slots."""
