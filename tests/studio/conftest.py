"""The table that the studio's tests begin with."""

import pytest

from declared_people import SECRET


@pytest.fixture
def people(tmp_path):
    rows = [f"{age % 90},{('female', 'male')[age % 2]},{age % 3 == 0},{SECRET}" for age in range(1500)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,sex,member,name", *rows]) + "\n")
    return path
