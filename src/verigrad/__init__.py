"""verigrad trains reasoning models with rewards that can be verified."""

__version__ = "0.1.0"
