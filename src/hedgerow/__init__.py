"""Hedgerow: synthetic tables under differential privacy."""

__version__ = "0.1.0"
