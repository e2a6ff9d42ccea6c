"""A publisher's answers, and a forger's checksums."""

from hedgerow.publish import folder

ANSWERS = {
    "title": "People, made up",
    "description": "A table of people.",
    "publisher": "The Office",
    "contact": "data@example.org",
    "authors": ["The Office", "A. Uthor"],
    "publication_date": "2026-03-31",
    "license": "CC-BY-4.0",
    "region": "Nowhere",
    "intended_use": "Tests.",
    "people": "Nobody.",
    "collection": "Made up.",
    "access": "The Office alone.",
    "justification": "It is a test.",
    "looked_before": "no",
}


def sealed(path):
    """Write the checksums of a folder again, as a forger would; a signature would have to go."""
    for name in (folder.SIGNATURE, folder.PUBLIC_KEY, folder.SUMS):
        (path / name).unlink(missing_ok=True)
    (path / folder.SUMS).write_bytes(folder._sums(path, folder._names(path)))
