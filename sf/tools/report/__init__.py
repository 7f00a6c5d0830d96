"""`sf-plot` and `sf-report`: pictures and pages of runs, made from the files in their directories."""
