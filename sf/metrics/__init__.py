"""What a run says of itself: metrics, where they go, and the display."""
