"""The names of the three files in the folder of a trained policy: `sf.zoo.folder` makes them."""

WEIGHTS = "policy.safetensors"
CONFIG = "config.yaml"
CARD = "README.md"
