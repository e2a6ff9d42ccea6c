"""Photographs the studio's steps in a headless Chromium, on a made-up table in the folder it is called in.

python docs/pictures/studio.py
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "support"))

WIDTH = 1200
ROWS = 20_000
SCHEMA = """\
dataset: patients
columns:
  age:       {type: integer, min: 0, max: 115}
  sex:       {type: category, values: [female, male, other]}
  ward:      {type: category, values: [medicine, surgery, cardiology, maternity], other: true}
  admitted:  {type: date, min: 2025-01-01, max: 2025-12-31, format: "%d.%m.%Y"}
  days:      {type: integer, min: 0, max: 365}
  cost:      {type: number, min: 0, max: 1000000, decimals: 2}
  smokes:    {type: boolean, missing: true}
"""
OPEN = {"admitted": "  admitted:  {type: date, min: TODO, max: TODO}", "smokes": "  smokes:    TODO"}
"""Lines of the schema as they are while somebody is at work on it."""


def table(path: Path) -> None:
    draw = random.Random(1)
    with path.open("w") as file:
        file.write("age,sex,ward,admitted,days,cost,smokes\n")
        for _ in range(ROWS):
            ward = draw.choices(("medicine", "surgery", "cardiology", "maternity"), (9, 7, 4, 2))[0]
            sex = "female" if ward == "maternity" else draw.choice(("female", "male"))
            age = draw.randrange(18, 45) if ward == "maternity" else min(100, int(draw.gauss(58, 19) ** 2) // 58)
            days = int(draw.expovariate(1 / (3 + age / 20)))
            cost = f"{400 + days * draw.lognormvariate(6.4, 0.4):.2f}"
            smokes = draw.choices(("yes", "no", ""), (2, 6, 1))[0]
            day = f"{draw.randrange(1, 29):02d}.{draw.randrange(1, 13):02d}.2025"
            file.write(f"{age},{sex},{ward},{day},{days},{cost},{smokes}\n")


def main() -> None:
    from browser import Browser
    from hedgerow.studio.project import Project
    from hedgerow.studio.server import Serving

    path = Path("patients.csv").resolve()
    table(path)
    project = Project(str(path))
    half = "\n".join(OPEN.get(line.strip().partition(":")[0], line) for line in SCHEMA.splitlines())
    serving = Serving(project)
    served = threading.Thread(target=serving.run)
    served.start()
    browser = Browser()
    main_says = "document.querySelector('main').innerText.includes('{0}')"

    def show(page: str, name: str = "", *, height: int = 900) -> None:
        browser.open(f"http://127.0.0.1:{serving.port}{serving.gate.base}{page}", width=WIDTH, height=height)
        if name:
            time.sleep(1)  # a frame is drawn a moment after it has come
            browser.screenshot(HERE / "studio" / f"{name}.png")

    def fill(**typed: str) -> None:
        for key, value in typed.items():
            browser.js(f"document.querySelector('main [name=\"{key}\"]').value = {value!r}")

    def press(words: str, then: str) -> None:
        button = f"find(one => one.textContent.startsWith('{words}'))"
        browser.js(f"[...document.querySelectorAll('main button')].{button}.click()")
        browser.arrive(main_says.format(then))

    try:
        (HERE / "studio").mkdir(exist_ok=True)
        browser.open(serving.gate.address, width=WIDTH)
        browser.arrive("location.pathname.endsWith('/table')")
        project.write(project.schema, half + "\n")
        show("/columns", "columns", height=880)
        show("/columns/2", "column", height=900)
        project.write(project.schema, SCHEMA)
        show("/budget")
        fill(lifetime="4")
        press("Open a ledger", "ε = 4")
        fill(epsilon="1", rows=str(ROWS))
        press("Save", "Go on to the run")
        show("/budget", "budget", height=960)
        show("/run")
        press("Make the release", "The release is there")
        show("/look", "look", height=900)
    finally:
        browser.close()
        serving.end()
        served.join()


if __name__ == "__main__":
    main()
