"""Trained policies in folders: those that come with the package (`zoo/NAME`), and those of the Hub (`hf:USER/NAME`)."""
