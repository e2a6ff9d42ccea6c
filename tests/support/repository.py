"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "support" / "corpus" / "releases-0.1"
EDITIONS = ROOT / "tests" / "support" / "editions"
