"""What the learner writes down: what a checkpoint holds, and when the next one is due."""
