"""Budget plans: who may take how much of one request's time, checked, explained, and argued for in a report."""
