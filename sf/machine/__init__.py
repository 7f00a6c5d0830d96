"""What this machine has: cores and their quotas, memory, versions."""
