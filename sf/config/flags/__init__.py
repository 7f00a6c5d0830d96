"""The flags, one module for each part of the trainer. Nothing here imports the part."""
