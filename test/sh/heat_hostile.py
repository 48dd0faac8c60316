#!/usr/bin/env python3
# A hostile file cannot make descry heat work for hours or take all memory: names as long as the file, in every cell,
# and buckets far apart.
import json
import os
import resource
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
SECONDS, BYTES = 60, 1 << 30  # of processor and memory; each of these inputs needs less than a second and 100 MB
LONG, CELLS = 10000000, 100000


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))


def heat(text, *args):
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + "/in", "w") as f:
            f.write(text)
        with open(tmp + "/out", "wb+") as out:
            r = subprocess.run([DESCRY, "heat", *args, tmp + "/in"], stdout=out, stderr=subprocess.PIPE, preexec_fn=limits)
            return r.returncode, os.path.getsize(tmp + "/out"), open(tmp + "/out", "rb").read(LONG * 3), r.stderr.decode()


def heat_map(rows, series, parties, cells):
    return json.dumps({"type": "heatmap", "time": {"first": 1, "step": 10**9}, "mode": "latency", "value": {"unit": "ns", "rows": rows},
                       "series": [{"name": s} for s in series], "parties": parties, "columns": [{"column": 0, "cells": cells}]})


def total(what, text, n, *args):
    rc, size, out, err = heat(text, "--json", *args)
    check(rc == 0 and json.loads(out.decode())["total"] == n, what, rc, size, err[:300])


total("a long name in each cell", heat_map([[1, 2]], ["A" * LONG], [[0, ""]], [0, 0, 1] * CELLS), CELLS)
total("a long name in each party", heat_map([[1, 2]], ["A" * LONG], [[0, str(i)] for i in range(CELLS)],
                                            [v for i in range(CELLS) for v in (0, i, 1)]), CELLS)
buckets = range(1, 60001)
total("a long key of DTrace's distribution", "  100  %s\n  value  ------------- Distribution ------------- count\n" % ("A" * LONG) +
      "".join("%d |@ 1\n" % i for i in buckets), len(buckets), "--format", "dtrace")
total("a long key of a distribution in JSON", json.dumps(
    {"type": "aggregation", "name": "", "keys": [100, "A" * LONG], "distribution": [{"min": i, "max": i, "count": 1} for i in buckets]}) + "\n",
      len(buckets))

# Gaps between buckets. A map of whole ranges has an empty row for each missing one; there are at most 65,536 of these.
few = heat_map([[i * 10, i * 10 + 9] for i in (1, 2, 300)], ["a"], [[0, ""]], [0, 0, 1, 1, 0, 1, 2, 0, 1])
rows = json.loads(heat(few, "--json")[2].decode())["value"]["rows"]
check(rows == [[i * 10, i * 10 + 9] for i in range(1, 301)], "missing rows", rows[:5], len(rows))
many = heat_map([[4000 * i, 4000 * i] for i in range(1, 60001)], ["a"], [[0, ""]], [0, 0, 1, 59999, 0, 1])
for how in ([], ["--json"], ["--text"]):
    rc, size, out, err = heat(many, *how)
    check(rc == 0 and size < 20 << 20, "wide gaps", how, rc, size, err[:300])
rows = json.loads(heat(many, "--json")[2].decode())["value"]["rows"]
check(60000 < len(rows) <= 65536 + 2 * 60000 and all(a[1] + 1 == b[0] for a, b in zip(rows, rows[1:])), "rows without gaps", len(rows))
rc, size, out, err = heat(heat_map([[4000 * i, 4000 * i] for i in range(1, 65538)], ["a"], [[0, ""]], [0, 0, 1]))
check(rc == 1 and "65537 different buckets" in err, "too many buckets", rc, err)
done()
