"""What takes long: run by workers, processes of their own, from the queue in the state."""
