"""Pictures of an agent at work: windows, videos, and what is drawn over them."""
