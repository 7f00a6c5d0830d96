"""Groups that can be looked at: cameras film what environments draw. Training uses none of it."""
