"""What an environment may change of the process around it, and what is put back behind it."""
