"""Amounts, charges and guarantees: arithmetic, no data."""
