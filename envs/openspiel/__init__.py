"""Games of OpenSpiel (https://github.com/google-deepmind/open_spiel), by their names there: `openspiel:leduc_poker`."""
