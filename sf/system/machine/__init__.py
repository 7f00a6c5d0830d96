"""What this machine has: cores and their quotas, memory, optional packages."""
