"""Rules that every row obeys: declared as SQL conditions, derived columns and public tables."""

from hedgerow.schema.rules.declared import Rule
from hedgerow.schema.rules.kept import Kept, Rules

__all__ = ["Kept", "Rule", "Rules"]
