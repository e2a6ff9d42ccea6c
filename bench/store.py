"""A table in an object store beside the same file here: CPU seconds until it is coded, the server's own apart.

The server is moto's, in a process of its own on this machine, so nothing waits for a network. Needs moto and boto3
(hedgerow[servers]).
"""

from __future__ import annotations

import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from typing import Any

from bench.pages import fill
from bench.process import in_a_process, needed

ROWS = 4_000_000
TIMES = 3
KEYS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def measure(table: str) -> dict[str, float]:
    """CPU seconds of all threads from opening the table until it is coded; the first time loads what is needed."""
    from bench.scale import schema_text, sizes
    from hedgerow.private.engines import open_engine
    from hedgerow.schema import Schema

    encoding = Schema.parse(schema_text(sizes())).encoding()
    spent = []
    for _ in range(TIMES + 1):
        begin = time.process_time()
        open_engine(table).prepare(encoding)
        spent.append(time.process_time() - begin)
    return {"cpu_s": statistics.median(spent[1:])}


def run() -> list[dict[str, Any]]:
    if importlib.util.find_spec("moto") is None:
        print("moto is not installed: no object store to compare with (hedgerow[servers])")
        return []
    import boto3

    from bench.scale import COLUMNS, write_rows

    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    at = f"http://127.0.0.1:{port}"
    os.environ.update(KEYS, AWS_ENDPOINT_URL=at)
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write_rows(f"{folder}/table", ROWS)
        command = [sys.executable, "-m", "moto.server", "-p", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                with closing(socket.socket()) as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            file = f"{folder}/table/{0:012d}.parquet"
            client = boto3.client("s3", endpoint_url=at, region_name="us-east-1")
            client.create_bucket(Bucket="people")
            client.upload_file(file, "people", "people.parquet")
            there, here = (
                needed(in_a_process("bench.store", "measure", each))["cpu_s"]
                for each in ("s3://people/people.parquet", file)
            )
        finally:
            server.terminate()
            server.wait()
    fill(
        "use/scale.md",
        "store",
        f"A Parquet file of {ROWS:,} × {COLUMNS} behind `s3://` takes {there:.2f} CPU seconds until it is coded, "
        f"the same file\nhere {here:.2f}: {there / here:.2f} times (median of {TIMES} each; the server, on this "
        "machine, apart).",
    )
    return [{"what": "s3", "cpu_s": there, "cpu_s_here": here, "ratio": there / here}]


if __name__ == "__main__":
    print(run())
