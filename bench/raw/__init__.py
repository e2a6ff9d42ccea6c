"""Raw tables, declared by types and generous bounds alone: the figures of docs/studies/raw.md."""
