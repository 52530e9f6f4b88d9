"""The main job, shown for real in half a minute: one target dies, and the callers of the other notice nothing."""
