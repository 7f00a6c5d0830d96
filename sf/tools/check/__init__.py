"""`sf-train --check`: what the trainer relies on, tried on this machine. A probe is a function and a row of `table`."""
