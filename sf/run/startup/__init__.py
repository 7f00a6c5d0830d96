"""What a run begins with, found in the parent before any process starts."""
