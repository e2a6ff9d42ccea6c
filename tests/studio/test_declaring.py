"""What a steward types is what a schema understands, and what could mean two things stays as it was typed."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hedgerow.studio.declaring import in_words, one_each, plain_day, plain_number, time_format


@given(some.integers(-(10**12), 10**12), some.sampled_from("., '"), some.integers(0, 99))
def test_a_grouped_number_with_two_decimals_is_the_number(whole, sign, hundredths):
    text = f"{whole:,}".replace(",", sign)
    decimal = "," if sign == "." else "."
    assert plain_number(f"{text}{decimal}{hundredths:02d}") == f"{whole}.{hundredths:02d}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("250,5", "250.5"), ("1.000.000", "1000000"), ("1 000", "1000"), ("-1.234,5", "-1234.5"), ("12,3456", "12.3456")],
)
def test_numbers_as_people_write_them(typed, meant):
    assert plain_number(typed) == meant


@pytest.mark.parametrize("typed", ["1,000", "1.000", "1e6", "", "ten", "1.000.5", "1,00,000", "250.5", "1.000.00"])
def test_what_could_mean_two_things_stays(typed):
    assert plain_number(typed) == typed


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("DD.MM.YYYY", "31.03.2026"),
        ("dd/mm/yyyy", "31/03/2026"),
        ("YYYYMMDD", "20260331"),
        ("yyyy-mm-dd hh:mm:ss", "2026-03-31 23:59:58"),
        ("HH:MM DD.MM.YYYY", "23:59 31.03.2026"),
    ],
)
def test_formats_as_people_write_them(typed, written):
    moment = datetime.datetime(2026, 3, 31, 23, 59, 58)
    assert moment.strftime(time_format(typed)) == written


@pytest.mark.parametrize(
    ("lines", "meant"),
    [
        (["a, b,c"], ["a", "b", "c"]),
        (["Smith, John; Doe, Jane"], ["Smith, John", "Doe, Jane"]),
        (["a, b", "c"], ["a, b", "c"]),
        (["a b"], ["a b"]),
        (["a, a,"], ["a"]),
    ],
)
def test_values_on_one_line_are_several(lines, meant):
    assert one_each(lines) == meant


def test_a_value_with_a_comma_is_told_from_two():
    assert in_words({"type": "category", "values": ["a, b"]}) != in_words({"type": "category", "values": ["a", "b"]})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("31.03.2026", "2026-03-31"),
        ("1.3.2026", "2026-03-01"),
        ("31.03.2026 23:59", "2026-03-31 23:59"),
        ("03/04/2026", "03/04/2026"),
        ("2026-03-31", "2026-03-31"),
    ],
)
def test_days_as_people_write_them(typed, meant):
    assert plain_day(typed) == meant
