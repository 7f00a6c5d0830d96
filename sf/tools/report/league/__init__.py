"""`sf-league`: the results of a league or tournament, in the terminal, as JSON and as a picture."""
