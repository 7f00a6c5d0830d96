"""Holds the presets, one YAML file each."""
