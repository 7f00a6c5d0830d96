"""`sf-bench`: how many frames a second, layer by layer."""
