"""What a run's answers are worth: one module a family of metrics."""
