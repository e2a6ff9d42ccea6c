"""What only the publisher knows: read from a file, drafted where it is lacking, never invented."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.schema.document import read_yaml

TODO = "TODO"
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
LONGEST = 10_000
"""Letters of one answer."""
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
_URL = re.compile(r"https?://[^\s<>\"{}|\\^`]+")


def _date(value: str) -> str | None:
    try:
        good = datetime.date.fromisoformat(value).isoformat() == value
    except ValueError:
        good = False
    return None if good else "must be a day such as 2026-03-31"


def _url(value: str) -> str | None:
    return None if _URL.fullmatch(value) else "must begin with https:// and hold no spaces"


def _license(value: str) -> str | None:
    if _SPDX.fullmatch(value) or _URL.fullmatch(value):
        return None
    return "must be an SPDX identifier such as CC-BY-4.0, or the address of the terms"


def _sector(value: str) -> str | None:
    return None if value in SECTORS else f"must be one of {listing(SECTORS)}"


@dataclass(frozen=True)
class Question:
    """A key of the file: what is asked, and what the answer may look like."""

    asked: str
    needed: bool = True
    several: bool = False
    check: Callable[[str], str | None] = lambda value: None


QUESTIONS = {
    "title": Question("The name of the synthetic table, as readers will cite it."),
    "description": Question("What it is about, in a few sentences for whoever finds it in a catalogue."),
    "publisher": Question("Who publishes it: the office or the company."),
    "contact": Question("An address (mail or web) for questions."),
    "authors": Question("Who made it; names of persons or of offices.", several=True),
    "publication_date": Question("The day of publication, as 2026-03-31.", check=_date),
    "license": Question("An SPDX identifier such as CC-BY-4.0, or the address of the terms.", check=_license),
    "region": Question("The place or places that it is about."),
    "intended_use": Question("What it is meant for, and what it is not meant for."),
    "people": Question(
        "Whom the private table is about, and which of them it holds (all, a sample, those who agreed)."
    ),
    "collection": Question("How the private rows were collected, and by whom."),
    "access": Question("Who can see the private rows, and how they are kept from others."),
    "justification": Question("Why this ε and this δ, this unit of privacy and this bound on rows."),
    "looked_before": Question(
        'Whether anybody looked at the private rows before choosing the schema, the method or ε, and how; "no" if not.'
    ),
    "url": Question("Where it will be found.", needed=False, check=_url),
    "version": Question("The version of the published table.", needed=False),
    "keywords": Question("Words to find it by.", needed=False, several=True),
    "sector": Question(f"One of {listing(SECTORS)}.", needed=False, check=_sector),
    "data_protection_contact": Question("Whom to ask about data protection.", needed=False),
    "legal_basis": Question("On which legal basis the private rows are processed.", needed=False),
    "sources": Question("Papers or pages about it.", needed=False, several=True),
    "replaces": Question("The earlier publication that this one corrects, and why.", needed=False),
    "notes": Question("Anything else that a reader should know.", needed=False),
}


@dataclass(frozen=True)
class Publisher:
    """The publisher's answers."""

    answers: Mapping[str, str | tuple[str, ...]]

    def __getitem__(self, key: str) -> str:
        """One answer as text; empty where it was left out."""
        given = self.answers.get(key, "")
        return given if isinstance(given, str) else ", ".join(given)

    def all(self, key: str) -> tuple[str, ...]:
        """An answer of several words or names."""
        given = self.answers.get(key, ())
        return (given,) if isinstance(given, str) else given

    @property
    def license_url(self) -> str:
        given = self["license"]
        return given if _URL.fullmatch(given) else f"https://spdx.org/licenses/{given}.html"

    @property
    def license_name(self) -> str | None:
        """The SPDX identifier, where that is what was given."""
        return None if _URL.fullmatch(self["license"]) else self["license"]

    def to_json(self) -> dict[str, Any]:
        return {key: given if isinstance(given, str) else list(given) for key, given in self.answers.items()}

    @classmethod
    def of(cls, data: Any, name: str) -> Publisher:
        """From plain values; OptionError says what is lacking or cannot be used."""
        if not isinstance(data, Mapping):
            raise OptionError("not-a-publisher", f'"{name}" must be a mapping with the keys {listing(QUESTIONS, 99)}.')
        for key in data:
            if key not in QUESTIONS:
                hint = suggestion(str(key), QUESTIONS)
                raise OptionError("unknown-publisher-key", f'"{name}" has an unknown key "{key}".{hint}')
        answers: dict[str, str | tuple[str, ...]] = {}
        lacking = []
        for key, question in QUESTIONS.items():
            given = data.get(key, "")
            listed = [given] if isinstance(given, str) else given
            if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
                raise OptionError("bad-publisher-fact", f'"{name}": {key} must be text, or a list of texts.')
            held = tuple(each.strip() for each in listed if each.strip())
            if any(each.startswith(TODO) for each in held) or (question.needed and not held):
                lacking.append(key)
            elif held:
                _check(name, key, held)
                answers[key] = held if question.several else held[0]
        if lacking:
            raise OptionError(
                "publisher-incomplete",
                f'"{name}" has no answer yet to: {listing(lacking, 99)}. Nobody but you knows, so nothing was '
                "made up or written. Hint: fill them in and repeat the command; optional ones may be deleted.",
            )
        return cls(answers)


def _check(name: str, key: str, held: tuple[str, ...]) -> None:
    question = QUESTIONS[key]
    if len(held) > 1 and not question.several:
        raise OptionError("bad-publisher-fact", f'"{name}": {key} must be one text, got a list.')
    for each in held:
        if len(each) > LONGEST or not all(letter.isprintable() or letter in "\n\t" for letter in each):
            raise OptionError(
                "bad-publisher-fact", f'"{name}": {key} is too long, or holds letters that cannot be seen.'
            )
        problem = question.check(each)
        if problem is not None:
            raise OptionError("bad-publisher-fact", f'"{name}": {key} {problem}, got "{each}".')


def load(path: Path) -> Publisher:
    """The answers in a file; a draft of it is written where there is none, and OptionError says so."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        from hedgerow.release.files import whole_file

        with whole_file(path, replace=False) as partial:
            partial.write_text(draft(), encoding="utf-8", newline="\n")
        raise OptionError(
            "no-publisher",
            f'"{path}" did not exist and was drafted: it asks what only you know. Nothing else was written. Hint: fill '
            "it in and repeat the command; later releases can use the same file.",
        ) from None
    except (OSError, UnicodeDecodeError):
        raise OptionError("cannot-read", f'"{path}" cannot be read as UTF-8 text.') from None
    data, _ = read_yaml(text, path.name)
    return Publisher.of(data, path.name)


def draft() -> str:
    """The questions as a file to fill in."""
    lines = ["# What only the publisher knows. Hedgerow makes none of it up: replace every TODO."]
    for needed in (True, False):
        if not needed:
            lines += ["", "# Optional: fill in, or leave out."]
        for key, question in QUESTIONS.items():
            if question.needed is needed:
                answer = f"[{TODO}]" if question.several else TODO
                lines += [f"# {question.asked}", f"{key}: {answer}" if needed else f"#{key}: {answer}"]
    return "\n".join(lines) + "\n"
