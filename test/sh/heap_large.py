#!/usr/bin/env python3
# timeout: 600
# descry heap with less memory than the graph of a dump needs: the answers are the same, the arrays are in files without a name, which
# have gone afterwards; a folder in which no file can be made is named. --ask gives the same answers from one reading.
import gzip
import resource
import struct

from live import *

NODES, LIST = 600000, 1000


def text(i, s):
    return struct.pack(">BIIQ", 1, 0, 8 + len(s), i) + s


def write(path):
    """Lists of nodes, whose heads are in an array that a root holds."""
    names = {1: b"Node", 2: b"next", 3: b"value", 4: b"[LNode;", 5: b"java/lang/Class", 6: b"java/lang/Object"}
    classes = {0x1000: 1, 0x1100: 4, 0x1200: 5, 0x1300: 6}
    out = [b"JAVA PROFILE 1.0.2\0" + struct.pack(">IQ", 8, 0)] + [text(i, s) for i, s in names.items()]
    out += [struct.pack(">BIIIQIQ", 2, 0, 24, 1, c, 0, n) for c, n in classes.items()]
    heap = []
    for c, fields in ((0x1300, []), (0x1200, []), (0x1100, []), (0x1000, [(2, 2), (3, 10)])):
        heap.append(struct.pack(">BQIQ", 0x20, c, 0, 0x1300 if c != 0x1300 else 0) + bytes(40) + struct.pack(">IHHH", 0, 0, 0, len(fields)) +
                    b"".join(struct.pack(">QB", *f) for f in fields))
    at = [0x10000 + i * 24 for i in range(NODES)]
    for i in range(NODES):
        following = at[i + 1] if (i + 1) % LIST and i + 1 < NODES else 0
        heap.append(struct.pack(">BQIQIQi", 0x21, at[i], 0, 0x1000, 12, following, i))
    heads = at[::LIST]
    heap.append(struct.pack(">BQIIQ", 0x22, 0x8000000, 0, len(heads), 0x1100) + struct.pack(">%dQ" % len(heads), *heads))
    heap.append(struct.pack(">BQ", 0xff, 0x8000000))
    body = b"".join(heap)
    out.append(struct.pack(">BII", 0x1c, 0, len(body)) + body + struct.pack(">BII", 0x2c, 0, 0))
    with gzip.open(path, "wb", 1) as f:
        f.write(b"".join(out))


def heap(*args, env=None, before=None):
    return subprocess.run([DESCRY, "heap", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=before,
                          env=dict(os.environ, TMPDIR=env) if env else None)


dump = os.path.join(TMP, "x.hprof.gz")
write(dump)
files = os.path.join(TMP, "files")
os.mkdir(files)
ASK = ("--histogram",), (), ("--retained",), ("--paths", "Node"), ("--refs", "0x8000000"), ("--find", 'size > 10 && retained > 20000')
for ask in ASK:
    whole, small = heap(*ask, dump), heap(*ask, "--memory", "1", dump, env=files)
    check(whole.returncode == 0 and "Node" in whole.stdout, ask, whole.stdout[:300])
    check((whole.returncode, whole.stdout, whole.stderr) == (small.returncode, small.stdout, small.stderr), ask, "in files", small.stdout[:500],
          small.stderr)
check(not os.listdir(files), "files stay", os.listdir(files))
# --ask: the same answers from one reading, and a message for what is no question
LINES = ("histogram", ("--histogram",)), ("summary", ()), ("retained", ("--retained",)), ("unreachable", ("--unreachable",)), \
    ("counts", ("--counts",)), ("duplicates", ("--duplicates",)), ("paths Node", ("--paths", "Node")), ("refs 0x8000000", ("--refs", "0x8000000")), \
    ("refs 0x%x" % (0x10000 + 24), ("--refs", "0x%x" % (0x10000 + 24))), ("find this->value == 77", ("--find", "this->value == 77")), \
    ("by class", ("--by", "class"))


def asked(lines, *more):
    return subprocess.run([DESCRY, "heap", "--ask", *more, dump], input="".join(line + "\n" for line in lines), capture_output=True, text=True)


r = asked([line for line, _ in LINES])
check((r.returncode, r.stderr) == (0, ""), r.returncode, r.stderr)
at = r.stdout
for line, options in LINES:
    whole = heap(*options, dump).stdout + "\n"
    if not check(at.startswith(whole), line, at[:500], whole[:500]):
        break
    at = at[len(whole):]
r = asked(["refs 0x3", "nonsense", "histogram 1", "", "refs 0x8000000"], "--json")
answers = [json.loads(line) for line in r.stdout.splitlines() if '"answered"' in line]
check(r.returncode == 1 and len(r.stderr.splitlines()) == 3 and "There are: summary, histogram" in r.stderr, r.returncode, r.stderr)
check(["error" in a for a in answers] == [True, True, True, False] and answers[3]["ns"] > 0, answers)
check('"type":"object"' in r.stdout and '"class":"Node[]"' in r.stdout, r.stdout[:500])
# the arrays are in the folder while it works
d = kill_at_end(subprocess.Popen([DESCRY, "heap", "--memory", "1", dump], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 env=dict(os.environ, TMPDIR=files)))
seen = 0
while d.poll() is None:
    try:
        for fd in os.listdir("/proc/%d/fd" % d.pid):
            at = "/proc/%d/fd/%s" % (d.pid, fd)
            if os.readlink(at).startswith(files) and os.readlink(at).endswith(" (deleted)"):
                seen = max(seen, os.stat(at).st_size)
    except OSError:
        pass
check(seen > NODES * 4, "no file was seen", seen)
# the memory of the process itself: with a limit on its private data, only the graph in files has room
LIMIT = 20 << 20
whole = heap("--retained", dump)
tight = heap("--retained", "--memory", "4", dump, env=files, before=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)))
check(tight.returncode == 0 and tight.stdout == whole.stdout, "with little memory", tight.stdout[:300], tight.stderr)
tight = heap("--retained", "--memory", "1000", dump, env=files, before=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)))
check(tight.returncode == 1 and "out of memory" in tight.stderr, "in memory alone", tight.returncode, tight.stderr)
bad = heap("--memory", "1", dump, env=os.path.join(TMP, "none"))
check(bad.returncode == 1 and os.path.join(TMP, "none") in bad.stderr and "No such file" in bad.stderr, bad.returncode, bad.stderr)
done()
