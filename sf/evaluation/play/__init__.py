"""A trained policy that acts: found, loaded, and played in episodes."""
