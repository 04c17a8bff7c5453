"""hk-fs-bench: how far language models can be trusted with Hong Kong's fire safety code."""

__version__ = "0.1.0"
