"""Where the runs of a sweep or a search happen: on this machine, or as jobs of a cluster."""
