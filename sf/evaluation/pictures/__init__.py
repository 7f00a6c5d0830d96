"""Pictures of an agent at work: windows, videos, what is drawn over them, and the keys of a person who plays."""
