"""Population-based training: which policy learns with which hyperparameters, and where they come from."""
