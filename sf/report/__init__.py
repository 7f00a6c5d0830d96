"""Pictures and pages of runs, made from what lies in their directories: `sf-plot` and `sf-report`."""
