"""What lies in the directory of a run, and how it is written so that nothing is lost."""
