"""Exact noise: samples per CPU second on one thread, integers included, and the ratio to NumPy's float normal."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np

from bench.turns import least_seconds
from hedgerow.private.noise import Stream, gaussian, laplace

TARGET = 5_000_000
"""Samples per second."""
DRAWS = 2_000_000
SCALES = (0.3, 1.0, 40.0, 1e4, 1e9)


def run() -> list[dict[str, Any]]:
    """One line per kind of noise and scale."""
    stream, generator = Stream(), np.random.default_rng()
    lines = []
    for draw in (gaussian, laplace):
        for scale in SCALES:
            works = partial(draw, stream, scale, DRAWS), partial(generator.standard_normal, DRAWS)
            ours, peer = (DRAWS / least for least in least_seconds(*works, rounds=5))
            lines.append(
                {
                    "what": f"{draw.__name__} noise, scale {scale:g}",
                    "samples_per_s": round(ours),
                    "at_least": TARGET,
                    "numpy_normals_per_s": round(peer),
                    "ratio": round(ours / peer, 3),
                }
            )
    return lines


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line))
