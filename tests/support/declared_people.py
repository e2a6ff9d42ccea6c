"""A table of people as a steward declares and publishes it, column by column, for the tests of the studio."""

SECRET = "Zaphod-71"
"""A value of real rows that nobody declared."""
COLUMNS = {
    "age": {"type": "integer", "min": "0", "max": "99"},
    "sex": {"type": "category", "values": "female\nmale", "other": "1"},
    "member": {"type": "boolean"},
    "name": {"type": "left out"},
}
NEEDED = ("title", "description", "publisher", "contact", "authors", "region", "intended_use", "people", "collection")
PUBLISHER = {
    **dict.fromkeys((*NEEDED, "access", "justification"), "words of the publisher"),
    "publication_date": "2026-03-31",
    "license": "CC-BY-4.0",
    "looked_before": "no",
}
