"""Four real rows and two synthetic ones over a (2 values), b (3), c (2): small enough to work a metric by hand."""

import numpy as np

from hedgerow.coded.domain import Domain

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
REAL = [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 2, 1)]
SYNTHETIC = [(0, 0, 0), (0, 1, 1)]


def table(rows, domain=DOMAIN):
    codes = np.array(rows).reshape(-1, len(domain))
    return {each.name: codes[:, index].astype(each.dtype) for index, each in enumerate(domain)}
