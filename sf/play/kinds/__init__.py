"""Players that are no trained policy: one module each, and what they share. `sf.play.opponents` has their names."""
