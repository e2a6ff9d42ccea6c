"""What the publisher declares, and how declared columns become coded attributes and back."""

from hedgerow.schema.encoding import Encoding
from hedgerow.schema.kinds import allow
from hedgerow.schema.schema import Schema

__all__ = ["Encoding", "Schema", "allow"]
