#!/usr/bin/env python3
# descry heat: the command line, every output from every input with the same numbers, hostile names, and the error
# messages.
import json
import os
import random
import re
import subprocess
import tempfile
import xml.dom.minidom
from collections import Counter

from checks import *

DESCRY = os.environ["DESCRY"]
os.environ.update(LINES="400", COLUMNS="80", TERM="xterm")
os.environ.pop("NO_COLOR", None)


def heat(*args, text="", rc=0):
    data = text if isinstance(text, bytes) else text.encode()
    r = subprocess.run([DESCRY, "heat", *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r.err = r.stderr.decode()
    check(r.returncode == rc, "exit code", args, r.returncode, r.err)
    return r


def document(*args, text="", rc=0):
    return json.loads(heat("--json", *args, text=text, rc=rc).stdout.decode())


def cells(doc):
    """(second, min, max, series, who) -> count"""
    found = Counter()
    for column in doc["columns"]:
        c = column["cells"]
        for row, party, count in zip(c[::3], c[1::3], c[2::3]):
            series, who = doc["parties"][party]
            key = ((doc["time"]["first"] + column["column"]) * doc["time"]["step"] / 1e9, *doc["value"]["rows"][row],
                   doc["series"][series]["name"], who)
            check(key not in found, "a party stands once in a cell", key)
            found[key] = count
    check(sum(found.values()) == doc["total"] == sum(s["count"] for s in doc["series"]), "the total is that of the cells")
    return found


def text_cells(out):
    found = Counter()
    for line in out.decode().splitlines():
        f = line.split("\t")
        if not line.startswith("#"):
            found[(float(f[0]), None if f[1] == "-" else int(f[1]), None if f[2] == "-" else int(f[2]), f[4],
                   f[5] if len(f) > 5 else None)] += int(f[3])
    return found


# Every event is in the row that holds it and in its second, in any order of events.
rng = random.Random(5)
events = [(100 * 10**9 + rng.randrange(30 * 10**9), int(rng.lognormvariate(10, 3)), rng.choice(["cp", "dd", "a b"])) for _ in range(20000)]
TEXT = "".join("%d.%09d %d %s\n" % (t // 10**9, t % 10**9, v, s) for t, v, s in events)


def right(found, step=10**9):
    """Each event takes one out of the cell that must have it; none is left."""
    left = Counter()
    bounds = {}
    for (second, lo, hi, series, who), n in found.items():
        bounds.setdefault((int(second * 1e9) // step, series), []).append((lo, hi))
        left[int(second * 1e9) // step, lo, hi, series] += n
    for t, v, s in events:
        mine = [b for b in bounds.get((t // step, s), []) if (b[0] is None or b[0] <= v) and (b[1] is None or v <= b[1])]
        if len(mine) != 1:
            return False
        left[t // step, mine[0][0], mine[0][1], s] -= 1
    return not any(left.values())


doc = document(text=TEXT)
check(right(cells(doc)), "every event is in its cell")
check(right(cells(document("--linear", text=TEXT))), "equal rows")
check(right(cells(document("--linear=1000", "--max", "50000", text=TEXT))), "given rows")
check(right(cells(document("--step", "250ms", text=TEXT)), 25 * 10**7), "other columns")
shuffled = TEXT.splitlines(True)
rng.shuffle(shuffled)
check(cells(document(text="".join(shuffled))) == cells(doc), "the order of the input does not matter")
NS = "".join("%d %d %s\n" % e for e in events)
check(cells(document(text=NS)) == cells(doc), "nanoseconds")
check(cells(document("--time", "ms", text="".join("%d.%06d %d %s\n" % (t // 10**6, t % 10**6, v, s) for t, v, s in events))) == cells(doc), "milliseconds")
who = cells(document("--fields", "who,value,time,series", text="x1 5 100 a b\nx2 5 100 a b\nx2 5 100 c\n"))
check(who == {(100, 5, 5, "a b", "x1"): 1, (100, 5, 5, "a b", "x2"): 1, (100, 5, 5, "c", "x2"): 1}, "--fields", who)
check(cells(document("--factor", "1000", text="1 1.5\n1 -0.5\n")) == {(1, 1500, 1999, "all", None): 1, (1, None, -1, "all", None): 1}, "--factor")

# The same numbers in text, JSON, SVG and HTML.
WANT = cells(doc)
check(text_cells(heat("--text", text=TEXT).stdout) == WANT, "text and JSON agree")
page = heat("--html", text=TEXT).stdout.decode()
inside = json.loads(re.search(r'id="data">\n(.*?)</script>', page, re.S).group(1))
check(cells(inside) == WANT, "HTML and JSON agree")
check("http:" not in page and "https:" not in page and "src=" not in page, "the page asks for nothing")


def titles(svg):
    return [t.firstChild.data for t in xml.dom.minidom.parseString(svg).getElementsByTagName("title")]


svg = heat(text=TEXT).stdout
shown = titles(svg)
by_cell = Counter()
for (second, lo, hi, series, w), n in WANT.items():
    by_cell[second - 100, lo, hi] += n
check(len(shown) == len(by_cell), "SVG has each cell", len(shown), len(by_cell))
numbers = Counter()
for t in shown:
    second, n, parts = re.match(r"(\d+)s, .*?: ([\d,]+) \((.*)\)$", t).groups()
    check(sum(int(p.rsplit(" ", 1)[1].replace(",", "")) for p in parts.split("; ")) == int(n.replace(",", "")), "parts of a title", t)
    numbers[int(second), int(n.replace(",", ""))] += 1
check(numbers == Counter((int(s), n) for (s, lo, hi), n in by_cell.items()), "SVG and JSON agree")
plain = heat("--plain", "--width", "60", text=TEXT).stdout.decode()
rows = plain[:plain.index("\n          +")].splitlines()
filled = sum(c != " " for l in rows if l[10:11] in ("|", "+") for c in l[11:])
check(filled == len(by_cell), "the terminal has each cell", filled, len(by_cell), plain)
check("\033[48;5;" in heat("--terminal", text=TEXT).stdout.decode(), "256 colours")

# A map of a map; several inputs; parts of it.
with tempfile.TemporaryDirectory() as d:
    def put(name, text):
        open(os.path.join(d, name), "w").write(text)
        return os.path.join(d, name)
    one = put("one", "".join(TEXT.splitlines(True)[::2]))
    two = put("two", "".join(TEXT.splitlines(True)[1::2]))
    check(cells(document(one, two)) == WANT, "files are added up")
    heat("-o", os.path.join(d, "m.json"), text=TEXT)
    again = document(os.path.join(d, "m.json"))
    check(cells(again) == WANT and again["value"] == doc["value"] and again["time"] == doc["time"], "a map is read again")
    check("not both" in heat("--json", one, os.path.join(d, "m.json")).err, "events and buckets are not mixed")
    for name, begin in ("x.svg", b"<?xml"), ("x.html", b"<!DOCTYPE html"), ("x.json", b"{"), ("x.txt", b"#time"):
        heat("-o", os.path.join(d, name), one)
        check(open(os.path.join(d, name), "rb").read().startswith(begin), "-o", name)
    check("No such file" in heat(os.path.join(d, "none"), rc=1).err, "no such file")
    check("open" in heat("-o", os.path.join(d, "none", "x"), one, rc=1).err, "an output that cannot be")
only = cells(document("--isolate", "dd", "-q", text=TEXT))
check(only == {k: n for k, n in WANT.items() if k[3] == "dd"}, "--isolate")
without = document("--exclude", "dd", text=TEXT)
check(without["total"] + without["left_out"] == doc["total"] and "dd" not in [s["name"] for s in without["series"]], "--exclude")
part = document("--from", "105", "--to", "110", "-q", text=TEXT)
check(sum(cells(part).values()) == sum(n for k, n in WANT.items() if 105 <= k[0] < 110), "--from, --to")

# Subsecond offset: an event is in one column and at its offset. Utilization: a program without events is idle.
sub = cells(document("--subsecond", "--fields", "time,-,series", text=TEXT))
expected = Counter((t // 10**9, t % 10**9 // (2 * 10**7) * 2 * 10**7, s) for t, v, s in events)
check(Counter({(int(k[0]), k[1], k[3]): n for k, n in sub.items()}) == expected, "--subsecond")
use = document("--utilization", text="10 50 cpu0\n10 100 cpu1\n12 3 cpu0\n12 99 cpu1\n")
check(cells(use) == {(10, 50, 54, "all", "cpu0"): 1, (10, 100, None, "all", "cpu1"): 1, (12, 0, 4, "all", "cpu0"): 1,
                     (12, 95, 99, "all", "cpu1"): 1, (11, 0, 4, "all", "cpu0"): 1, (11, 0, 4, "all", "cpu1"): 1}, "--utilization", cells(use))
check(len(use["value"]["rows"]) == 21 and use["value"]["unit"] == "%", "all of 0 to 100%")
check(cells(document("--utilization", "--full", "2000", text="10 1000 a\n")) == {(10, 50, 54, "all", "a"): 1}, "--full")

# The output of descry and DTrace, as text and as JSON.
HIST = """
              928  sh                                                    11269
           value  ------------- Distribution ------------- count
             256 |                                         0
             512 |@@@@@@@@@@@@@@@@@@@@@@@@@@               2
            1024 |                                         0
            2048 |@@@@@@@@@@@@@                            1
            4096 |                                         0

              930  bash                                                  11270
           value  ------------- Distribution ------------- count
              -2 |                                         0
              -1 |@@@@                                     1
               0 |@@@@@@@@@@@@                             3
               1 |                                         0

"""
found = cells(document(text=HIST))
check(found == {(928, 512, 1023, "sh", "11269"): 2, (928, 2048, 4095, "sh", "11269"): 1, (930, -1, -1, "bash", "11270"): 1,
                (930, 0, 0, "bash", "11270"): 3}, "distributions as text", found)
LHIST = """
              928  sh
           value  ------------- Distribution ------------- count
             < 0 |@@@@                                     1
               0 |                                         0
              10 |@@@@@@@@@@@@@                            5
           >= 20 |@@@@@@@@                                 2

"""
found = cells(document(text=LHIST))
check(found == {(928, None, -1, "sh", None): 1, (928, 10, 19, "sh", None): 5, (928, 20, None, "sh", None): 2}, "lquantize as text", found)
check(cells(document("--by", "2", text=HIST)).keys() >= {(928, 512, 1023, "sh, 11269", None)}, "--by")
check("no time as key" in heat("--json", text=LHIST.replace("928", "one"), rc=1).err, "no time")
LINES = "".join(json.dumps(o) + "\n" for o in (
    {"type": "aggregation", "name": "a", "func": "quantize", "keys": [928, "sh"], "distribution": [{"min": 512, "max": 1023, "count": 2}]},
    {"type": "aggregation", "name": "b", "func": "lquantize", "keys": [929, "sh"], "distribution": [{"min": None, "max": 511, "count": 4}, {"min": 600, "max": None, "count": 1}]},
    {"type": "drop", "kind": "aggregation", "count": 7}, {"type": "report", "elapsed_ns": 5}))
check("overlap" in heat("--json", text=LINES, rc=1).err, "buckets that overlap")
r = heat("--json", "--agg", "@b", text=LINES)
check("lost 7" in r.err and "left out" in r.err, "what is lost is said", r.err)
check(cells(json.loads(r.stdout)) == {(929, None, 511, "sh", None): 4, (929, 600, None, "sh", None): 1} and json.loads(r.stdout)["lost"] == 7, "--agg")
check(b"7 lost by the tracer" in heat("-q", "--agg", "b", text=LINES).stdout, "and drawn")
printed = json.dumps({"type": "printf", "text": "100 5 a\n100 6 b\n"}) + "\n"
check(cells(document(text=printed)) == {(100, 5, 5, "a", None): 1, (100, 6, 7, "b", None): 1}, "printf() in JSON")
numbers = "  928    0    500000000\n  928    1    20\n"
check(cells(document("--format", "dtrace", "--utilization", "--full", "1000000000", text=numbers)) ==
      {(928, 50, 54, "all", "0"): 1, (928, 0, 4, "all", "1"): 1}, "numbers of an aggregation")

# Hostile names: shown as text, and unchanged in JSON.
hostile = [b"<script>alert(1)</script>", b"\"'&]]>", bytes(range(1, 9)) + b"\x7f", b"\xff\xfe\xc0", b"x" * 65536, "\u202eexe.\u4f60".encode(),
           b"</script><script>document.title='owned'</script>", b"\\u003c"]
text = b"".join(b"100.5 10 " + h + b"\n" for h in hostile)
doc = document(text=text)
names = {s["name"] for s in doc["series"]}
check(len(names) == len(hostile) and {h.decode() for h in hostile if h.isascii()} <= names, "JSON gives names back", sorted(names)[:3])
svg = heat(text=text).stdout
dom = xml.dom.minidom.parseString(svg)
check(not dom.getElementsByTagName("script") and "more" in titles(svg)[0], "no script in the SVG")
for h in hostile:
    xml.dom.minidom.parseString(heat("--title", h.replace(b"\0", b""), "--subtitle", h, "--unit", h[:200], text=b"100 10 " + h + b"\n").stdout
                                if len(h) < 60000 else svg)
page = heat("--html", text=text).stdout.decode("utf-8")
check(page.count("<script") == 3 and page.count("</script>") == 3, "no script but ours", page.count("<script"))
data = json.loads(re.search(r'id="data">\n(.*?)</script>', page, re.S).group(1))
check(len({s["name"] for s in data["series"]}) == len(hostile) and not any(ord(c) < 32 for s in data["series"] for c in s["name"]), "names can be shown")
out = heat("--text", text=text).stdout
check(len(out.splitlines()) == len(hostile) + 1 and b"\x01" not in out and b"\\x01" in out, "one line each")
check(b"\x01" not in heat("--terminal", text=text).stdout, "none reaches the terminal")

# Unreadable lines are counted. Errors are reported.
check("line 2" in heat("--json", text="1 2\nwhat?\n3 4\n").err, "skipped lines are said")
check("no events" in heat(text="", rc=1).err, "empty input")
check(b"There are no events" in heat("-q", text="", rc=1).stdout, "and drawn")
check("--step" in heat(text="1 1\n99999999 1\n", rc=1).err, "times too far apart")
check(not heat("-q", "--json", text="1 2\nwhat?\n").err, "-q")
if os.path.exists("/dev/full"):
    check("No space" in heat("-o", "/dev/full", text="1 1\n", rc=1).err, "a full disk")
for wrong in (["--nosuch"], ["--colors", "x"], ["--format", "x"], ["--width", "x"], ["--step", "x"], ["--step", "0"], ["--fields", "x"],
              ["--min", "3"], ["--min", "3", "--max", "3"], ["--subsecond", "--utilization"], ["-c", "true"], ["--key", "0"]):
    heat(*wrong, text="1 1\n", rc=2)
check(b"usage" in heat("--help").stdout and b"--exclude" in heat("--help").stdout, "--help")
done()
