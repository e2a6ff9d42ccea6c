"""Photographs pages for README and docs, in a headless Chromium. All of them come from made-up tables.

    hedgerow demo
    hedgerow evaluate demo/private.parquet demo/synthetic.parquet -s demo/private.yaml --target sex \
        --report demo/evaluation.html
    hedgerow example opm -o people.parquet --rows 10000
    hedgerow compare people.parquet -s people.yaml --methods aim,mst --epsilons .1,1,10 --runs 2 -o demo/comparison
    python docs/pictures/pages.py demo
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "support"))

# picture: the page, and the section before which it is cut
PAGES = {
    "release-page.png": ("synthetic.html", "marginals"),
    "evaluation-page.png": ("evaluation.html", "spikes"),
    "comparison-page.png": ("comparison/comparison.html", "time"),
}


def main() -> None:
    from browser import Browser

    folder = Path(sys.argv[1])
    browser = Browser()
    for picture, (page, cut_before) in PAGES.items():
        if (folder / page).exists():
            browser.open(folder / page, width=1100)
            browser.js("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            top = browser.js(f"document.getElementById('{cut_before}').getBoundingClientRect().top + scrollY")
            browser.screenshot(HERE / picture, height=top + 20)
    browser.close()


if __name__ == "__main__":
    main()
