"""One release of a raw table in this process: cut privately, given cuts or declared bins, or made by a peer."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.process import ONE_THREAD
from bench.raw.figures import figures
from bench.raw.tables import Raw, read

if TYPE_CHECKING:
    import pandas as pd

    import hedgerow as hr

DELTA = 1e-6
QUANTILES = 50
SPIKE = 0.015
PEERS = Path(os.environ.get("HEDGEROW_PEERS", "HEDGEROW_PEERS-is-not-set"))
"""A folder of virtual environments, one for each peer, named as in the programs of `peers/`."""
PATIENCE = 5
"""CPU minutes that a peer is given for one table."""


def measure(table: str, cells: str, epsilon: float) -> dict[str, float]:
    """Figures of one run, and the CPU seconds it took."""
    raw = read(table)
    if (PROGRAMS / f"with_{cells}.py").exists():
        made, seconds = _peer(raw, cells, epsilon)
    elif cells == "codes":
        made, seconds = _real_codes(raw, epsilon)
    else:
        made, seconds = _ours(raw, cells, epsilon)
    return {**figures(raw, made), "cpu_s": seconds}


def _ours(raw: Raw, cells: str, epsilon: float) -> tuple[pd.DataFrame, float]:
    import hedgerow as hr

    schema = with_oracle_cuts(raw.schema, raw.rows) if cells == "oracle" else raw.schema
    begin = time.process_time()
    made = hr.synthesize(raw.rows, schema, hr.Budget(epsilon, DELTA)).sample().to_pandas()
    return made, time.process_time() - begin


def _real_codes(raw: Raw, epsilon: float) -> tuple[pd.DataFrame, float]:
    """The real rows, coded in cells that were bought and read back: what no model can mend."""
    import pyarrow as pa

    import hedgerow as hr

    begin = time.process_time()
    encoding = hr.synthesize(raw.rows, raw.schema, hr.Budget(epsilon, DELTA), "independent").schema.encoding()
    made = encoding.decode(encoding.encode(pa.Table.from_pandas(raw.rows)), np.random.default_rng(0)).to_pandas()
    return made, time.process_time() - begin


def with_oracle_cuts(schema: hr.Schema, rows: pd.DataFrame) -> hr.Schema:
    """The schema with the cells of somebody who has seen the rows."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.schema.endings import ENDING
    from hedgerow.schema.leaves import Leaf

    for name, _ in schema.discoveries:
        places = schema.waiting(name).places(pa.array(rows[name]))
        lines = {line: values.astype(np.int64) for line, values in places.lines.items() if line != ENDING}
        cells = {line: [[Leaf(*leaf)] for leaf in _oracle(values)] for line, values in lines.items()}
        schema = schema.with_cuts({name: cells})
    data = schema.to_dict()
    for column in data["columns"].values():
        column.pop("discovered", None)
    return hr.Schema.from_dict(data)


def _oracle(values: Any) -> list[tuple[int, int, int]]:
    distinct, counts = np.unique(values, return_counts=True)
    spikes = distinct[counts >= SPIKE * len(values)].tolist()
    rest = values[~np.isin(values, spikes)]
    levels = [*np.linspace(0, 1, QUANTILES + 1), 0.0001, 0.001, 0.005, 0.99, 0.995, 0.999, 0.9999]
    edges = np.quantile(rest, levels, method="lower").tolist() if len(rest) else []
    starts = sorted({int(distinct[0]), *map(int, edges), *spikes, *(spike + 1 for spike in spikes)})
    ends = [*(start - 1 for start in starts[1:]), int(distinct[-1])]
    held = [int(((values >= start) & (values <= end)).sum()) for start, end in zip(starts, ends, strict=True)]
    return [each for each in zip(starts, ends, held, strict=True) if each[2]]


PROGRAMS = Path(__file__).parent / "peers"


def at_hand(peer: str) -> bool:
    """Whether a peer is installed in a virtual environment of its own."""
    return (PEERS / peer / "bin" / "python").exists()


def _peer(raw: Raw, peer: str, epsilon: float) -> tuple[pd.DataFrame, float]:
    """What a peer's program makes of the same rows and declarations; CPU seconds without its imports."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        raw.rows.to_csv(Path(folder) / "rows.csv", index=False)
        declared = {"epsilon": epsilon, "delta": DELTA, "columns": raw.schema.to_dict()["columns"]}
        (Path(folder) / "declared.json").write_text(json.dumps(declared, default=str), encoding="utf-8")
        done = subprocess.run(
            [PEERS / peer / "bin" / "python", PROGRAMS / f"with_{peer}.py", folder],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE * 60, PATIENCE * 60)),
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise RuntimeError(f"did not end within {PATIENCE} CPU minutes")
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1])
        times = raw.columns("date", "datetime")
        made = pd.read_csv(Path(folder) / "made.csv", keep_default_na=False, parse_dates=times)
    made = made.astype({name: str for name in made if name not in raw.declared})
    return made[list(raw.rows)], float(done.stdout.splitlines()[-1])
