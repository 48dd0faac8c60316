#!/usr/bin/env python3
# timeout: 900
# serial
# descry heap and descry heap alloc, and SIGKILL of the tracer at a random instant: programs of Ruby, Python, Java and Node.js answer as they would
# without descry, end with their own exit code, and can be read again. DESCRY_TORTURE=N: so many kills, and a tally; 24 if not given.
import random

import checks

from heap_kept import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "24"))
ROUND = 6  # kills of one process

WAYS = (("heap",), ("heap", "alloc"), ("heap", "--fork"), ("heap", "--histogram"), ("heap", "alloc", "--every", "0.1"))


def alloc_lasts(way):
    return "alloc" in way


def seconds(p, way):
    """How long it takes, or until it records."""
    begun = time.monotonic()
    d = descry(way, p.p.pid)
    line = d.stderr.readline()
    while line and "recording" not in line:
        line = d.stderr.readline()
    took = time.monotonic() - begun
    if alloc_lasts(way):
        check("recording" in line, p.name, way, "does not record")
        d.send_signal(signal.SIGINT)
    d.communicate(timeout=120)
    check(d.returncode == 0, p.name, way, "exit", d.returncode)
    return took


tally, amid, took = {}, 0, {}
for i in range(KILLS):
    name, argv, _ = LANGUAGES[i // ROUND % len(LANGUAGES)]
    if i % ROUND == 0:
        p = Program(name, argv)
    way = WAYS[i % len(WAYS)]
    if (name, way) not in took:
        took[name, way] = seconds(p, way)
        p.request()
        p.answer("after it was read")
    p.request()
    d = descry(way, p.p.pid)
    time.sleep(random.random() * took[name, way] * (1.5 if alloc_lasts(way) else 1))
    amid += d.poll() is None
    d.kill()
    d.communicate()
    tally[" ".join(way)] = tally.get(" ".join(way), 0) + 1
    p.answer(i, way)
    p.request()
    p.answer(i, way, "a request after the kill")
    limit = time.monotonic() + 60
    # the watchdog takes the probes back, and stops the process for that
    while (descendants(p.p.pid) or state(p.p.pid) in "tT") and time.monotonic() < limit:
        time.sleep(0.01)
    check(time.monotonic() < limit, name, way, "processes stay, or it is stopped", descendants(p.p.pid), state(p.p.pid))
    if i % ROUND == ROUND - 1 or i == KILLS - 1:
        r = subprocess.run([DESCRY, "heap", "--json", "-p", str(p.p.pid)], capture_output=True, text=True, timeout=300)
        check(r.returncode == 0 and json.loads(r.stdout.splitlines()[0])["objects"] > 20000, name, "is read after kills", r.stderr)
        p.end()
    if checks.failures > 20:
        break
if "DESCRY_TORTURE" in os.environ:
    print("%d kills, %d of them while descry was at work: %s; %d failures" %
          (sum(tally.values()), amid, ", ".join("%d of %s" % (n, w) for w, n in tally.items()), checks.failures))
done()
