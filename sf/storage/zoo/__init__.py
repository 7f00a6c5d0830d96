"""Trained policies in folders: those that come with the package (`zoo/NAME`), and those of the Hub (`hf:USER/NAME`)."""

# The files in the folder of a trained policy: `sf.storage.zoo.folder` makes them.
WEIGHTS = "policy.safetensors"
CONFIG = "config.yaml"
CARD = "README.md"
