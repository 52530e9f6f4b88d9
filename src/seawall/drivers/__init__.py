"""Who waits: threads block, tasks are suspended. One small module each."""
