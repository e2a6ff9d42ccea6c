"""Drafting a schema: names from the header, everything else from public sources, TODO for the rest."""

from hedgerow.schema.draft.drafting import Draft, draft_schema

__all__ = ["Draft", "draft_schema"]
