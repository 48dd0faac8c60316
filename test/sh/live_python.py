#!/usr/bin/env python3
# examples/pyheld.d: what is still held is what the Python program has not given back, to the byte. examples/pyimports.d: the module that
# takes its time when it is imported is named, and not the module that imports it.
# serial
from live import *

PYTHON = "/usr/bin/python3"  # the one whose probes Debian builds in


def held(r):
    return {m[0]: int(m[1]) for m in re.findall(r"^ *(\S.*?) +(-?\d+)$", r.out, re.M) if int(m[1])}


notes = sh("readelf -n " + os.path.realpath(PYTHON)).stdout
if "Name: line" not in notes or "import__find__load__start" not in notes:
    skip("%s has no USDT probes" % PYTHON)
with open(TMP + "/slow.py", "w") as f:
    f.write("import time\ntime.sleep(0.3)\n")
with open(TMP + "/kept.py", "w") as f:
    f.write("import os, slow\nkept = []\n\n\ndef keep():\n    kept.append(bytes(4000))\n\n\ndef drop():\n    bytes(5000)\n\n\n"
            "for _ in range(20):\n    keep()\n    drop()\nos._exit(0)\n")
size = int(sh(PYTHON + " -c 'import sys; print(sys.getsizeof(bytes(4000)))'").stdout)
r = descry("-s", "examples/pyheld.d", c="%s %s/kept.py" % (PYTHON, TMP))
check(held(r).get("kept.py:6 keep") == 20 * size and not held(r).get("kept.py:10 drop"), "pyheld.d: each byte kept, and no other", size, r)
r = descry("-s", "examples/pyimports.d", c="%s %s/kept.py" % (PYTHON, TMP))
times = held(r)
check(times.get("slow", 0) >= 300000 and max(times, key=times.get) == "slow", "pyimports.d: the slow module", r)
done()
