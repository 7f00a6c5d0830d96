"""What the processes of a run share: tables, slots and queues in shared memory. Nothing here is used by one process
alone."""
