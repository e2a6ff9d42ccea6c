"""Self-contained pages: what they say is handed to them, and nothing here has a way to private rows."""
