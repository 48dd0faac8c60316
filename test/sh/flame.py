#!/usr/bin/env python3
# descry flame: the command line, every output from every input, and the error messages.
import gzip
import json
import os
import re
import subprocess
import tempfile
import xml.dom.minidom

from checks import *

DESCRY = os.environ["DESCRY"]


def flame(*args, text="", rc=0):
    data = text if isinstance(text, bytes) else text.encode()
    r = subprocess.run([DESCRY, "flame", *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r.err = r.stderr.decode()
    check(r.returncode == rc, "exit code", args, r.returncode, r.err)
    return r


PERF = "".join("cmd%d %d/%d [000] %d.5: 10 cycles: \n\tffffffff81000010 k%d+0x1 ([kernel.kallsyms])\n"
               "\t  7f0000001 u<%d>+0x2 (/lib/libc.so)\n\n" % (i % 3, i, i, i, i % 7, i % 5) for i in range(2000))
folded = flame("--folded", text=PERF)
check(not folded.stderr, "no remarks", folded.err)
lines = folded.stdout.decode().splitlines()
check(len(lines) == 105 and lines == sorted(lines), "sorted and merged", len(lines))
check(sum(int(l.split()[-1]) for l in lines) == 20000, "nothing is lost")
check(flame("--folded", text=folded.stdout).stdout == folded.stdout, "folding folded text changes nothing")
check(flame("--folded", text="\n".join(reversed(lines))).stdout == folded.stdout, "the order of the input does not matter")

# The same numbers in every output.
tree = json.loads(flame("--json", text=folded.stdout).stdout)
check(tree["value"] == 20000, "JSON's total")


def children(node, tree):
    return (tree["parts"][node["part"]] if "part" in node else node).get("children", [])


def leaves(node, path=(), tree=None):
    tree = tree or node
    if node["self"]:
        yield ";".join(path), node["self"]
    for c in children(node, tree):
        yield from leaves(c, path + (c["name"],), tree)


def nesting(text):
    """Levels of objects and lists in JSON whose strings hold no brackets."""
    depth = most = 0
    for c in text:
        depth += (c in "{[") - (c in "}]")
        most = max(most, depth)
    return most


check(["%s %d" % l for l in leaves(tree)] == lines, "JSON and text agree")

# Stacks of any depth nest to less than 100 levels, and nothing is lost.
deep = sorted(";".join("f%d" % (i if i < split else -i) for i in range(depth)) + " %d" % (depth + 1)
              for depth in (1, 39, 40, 41, 80, 81, 250) for split in (20, 60, 120))
deep = flame("--folded", text="\n".join(deep)).stdout.decode().splitlines()
text = flame("--json", text="\n".join(deep)).stdout.decode()
check(nesting(text) < 98, "nesting", nesting(text))  # descry profile puts an object around
check(sorted("%s %d" % l for l in leaves(json.loads(text))) == deep, "deep stacks are whole")
check(json.loads(text)["value"] == sum(int(l.split()[-1]) for l in deep), "their total")
svg = flame(text=folded.stdout).stdout
titles = [t.firstChild.data for t in xml.dom.minidom.parseString(svg).getElementsByTagName("title")]


def nodes(node):
    yield "%s (%s samples" % (node["name"], format(node["value"], ","))
    for c in node.get("children", []):
        yield from nodes(c)


check(sorted(t.rsplit(",", 1)[0] for t in titles) == sorted(nodes(tree)), "JSON and SVG agree")
page = flame("--html", text=folded.stdout).stdout.decode()
data = json.loads(re.search(r'id="data">\n(.*?)</script>', page, re.S).group(1))
check(sum(data["self"]) == 20000 and len(data["depth"]) == len(titles), "JSON and HTML agree")
check("http://" not in page.replace("http://www.w3.org/", "") and "src=" not in page, "the page asks for nothing")
check(b'fill="#' in svg and b"xlink" not in svg, "the picture asks for nothing")

# Files, names of outputs, several inputs, differences.
with tempfile.TemporaryDirectory() as d:
    before, after = os.path.join(d, "before"), os.path.join(d, "after")
    open(before, "w").write("a;b 10\na;c 10\n")
    open(after, "w").write("a;b 30\na;d 10\n")
    check(flame("--folded", before, after).stdout == b"a;b 40\na;c 10\na;d 10\n", "files are added up")
    check(flame("--diff", "--folded", before, after).stdout == b"a;b 10 30\na;c 10 0\na;d 0 10\n", "--diff")
    check(flame("--diff", "--normalize", "--folded", before, after).stdout ==
          b"a;b 20 30\na;c 20 0\na;d 0 10\n", "--normalize")
    check(flame("--reverse", "--folded", before).stdout == b"b;a 10\nc;a 10\n", "--reverse")
    for name, begin in ("x.svg", b"<?xml"), ("x.html", b"<!DOCTYPE html"), ("x.json", b"{"), ("x.folded", b"a;b"):
        flame("-o", os.path.join(d, name), before)
        check(open(os.path.join(d, name), "rb").read().startswith(begin), "-o", name)
    check("two files" in flame("--diff", before, rc=2).err, "--diff with one file")
    check("No such file" in flame(os.path.join(d, "none"), rc=1).err, "no such file")
    check("open" in flame("-o", os.path.join(d, "none", "x"), before, rc=1).err, "an output that cannot be")
if os.path.exists("/dev/full"):
    check("No space" in flame("-o", "/dev/full", text="a 1\n", rc=1).err, "a full disk")
for kind in "--svg", "--html", "--folded", "--json", "--pprof", "--speedscope":
    with tempfile.TemporaryDirectory() as d:
        r = flame(kind, "-q", text="", rc=1)
        check("no stacks" in r.err and not r.stdout, "empty input", kind, r.stdout)
        path = os.path.join(d, "x")
        open(path, "w").write("as it was")
        flame(kind, "-o", path, text="a 0\n", rc=1)
        check(open(path).read() == "as it was", "no picture of nothing is written", kind)
        flame(kind, "-o", path + "y", text="no stack\n", rc=1)
        check(not os.path.exists(path + "y"), "no file either", kind)
check("line 2" in flame("--folded", text="a;b 1\nwhat?\n").err, "skipped lines are said")
for wrong in (["--nosuch"], ["--colors", "x"], ["--format", "x"], ["--width", "x"], ["--minwidth", "x%"]):
    flame(*wrong, text="a 1\n", rc=2)
check(b"usage" in flame("--help").stdout, "--help")
check(b"--event-filter" in flame("--help").stdout, "--help is whole")

# For other tools' viewers, and back.
with tempfile.TemporaryDirectory() as d:
    for name in ("x.pb.gz", "x.speedscope.json"):
        path = os.path.join(d, name)
        flame("-o", path, text=folded.stdout)
        check(flame("--folded", path).stdout == folded.stdout, "there and back", name)
    check(open(os.path.join(d, "x.pb.gz"), "rb").read(2) == b"\x1f\x8b", "pprof is gzipped")
    scope = json.load(open(os.path.join(d, "x.speedscope.json")))
    check(sum(scope["profiles"][0]["weights"]) == 20000 == scope["profiles"][0]["endValue"], "speedscope's total")
    check("cut off" in flame(text=open(os.path.join(d, "x.pb.gz"), "rb").read()[:-9], rc=1).err, "a cut profile")

    check("line 1" in flame("--format", "speedscope", text="{]", rc=1).err, "no JSON")

# The looks of time.
svg = flame("--offcpu", text="a;b 5\n").stdout.decode()
check("Off-CPU Time" in svg and "(5 us, 100.00%)" in svg, "--offcpu")
svg = flame("--chain", "--countname", "ms", text="wakeup 5 w\n              k`wake+0x1\noffcpu 5 7 s\n              k`sleep+0x2\n").stdout.decode()
check("Chain Graph" in svg and "k`wake (7 ms" in svg and "<title>-- (7 ms" in svg, "--chain")
check("not both" in flame("-n", "BEGIN", "x", rc=2).err, "a program and a file")
check("want a program" in flame("-p", "1", rc=2).err, "-p alone")

# Hostile names.
hostile = [b"<script>alert(1)</script>", b"\"'&]]>", bytes(range(1, 10)) + b"\x0b\x7f", b"\xff\xfe\xc0", b"x" * 65536,
           "\u202eexe.\u4f60".encode()]
text = b"".join(b"base;" + h + b" 10\n" for h in hostile)
document = xml.dom.minidom.parseString(flame(text=text).stdout)
check(len(document.getElementsByTagName("script")) == 1, "no script but ours")
check(len(document.getElementsByTagName("title")) == len(hostile) + 2, "every name is shown")
json.loads(flame("--json", text=text).stdout.decode("utf-8"))
out = flame("--folded", text=text).stdout
check(sorted(out.splitlines()) == sorted(text.splitlines()), "folded text keeps the bytes of names")


# pprof: small files that would become large ones
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, n):
    return varint(field << 3) + varint(n)


def pprof(inlined, frames):
    """One sample of so many frames, each a location with so many inlined functions."""
    return (message(1, number(1, 1) + number(2, 2)) + message(4, number(1, 1) + message(4, number(1, 1)) * inlined) +
            message(5, number(1, 1) + number(2, 3)) + message(2, message(1, b"\1" * frames) + message(2, b"\1")) +
            b"".join(message(6, s) for s in (b"", b"cpu", b"count", b"f")))


out = flame("--folded", text=pprof(3, 40)).stdout
check(out.endswith(b" 1\n") and [f.split(b"_[")[0] for f in out[:-3].split(b";")] == [b"f"] * 120, "pprof with inlined functions", out)
check("more frames than its size allows" in flame(text=gzip.compress(pprof(20000, 20000)), rc=1).err, "a pprof profile of 400 million frames")
bomb = gzip.compress(pprof(1, 1) + message(6, b"x" * (200 << 20)), 9)
check(len(bomb) < 1 << 20 and "100 times larger" in flame(text=bomb, rc=1).err, "a gzip bomb")
with tempfile.TemporaryDirectory() as tmp:  # a long line that takes few bytes in its file
    with gzip.open(tmp + "/long.gz", "wb", 1) as f:
        f.write(b"a;b 1\n" + b"x" * (100 << 20) + b"\nc;d 2\n")
    r = subprocess.run(["sh", "-c", 'ulimit -d 100000; exec "$1" flame --folded "$2"', "sh", DESCRY, tmp + "/long.gz"], capture_output=True, text=True)
    check(r.stdout == "a;b 1\nc;d 2\n" and "line 2" in r.stderr, "a long line of gzipped text", r)

# A line of folded text is never put together in memory: a name of 64 kB in each of 1,500 frames makes one of 98 MB. More than 64 MB and 512
# times the input is refused.
for frames in (1500, 3000):
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + "/deep.json", "w") as f:
            json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "A" * 65536}]},
                       "profiles": [{"type": "sampled", "name": "p", "unit": "none", "startValue": 0, "endValue": 1, "samples": [[0] * frames],
                                     "weights": [1]}]}, f)
        r = subprocess.run(["sh", "-c", 'ulimit -d 60000; "$1" flame --folded "$2" | wc -c', "sh", DESCRY, tmp + "/deep.json"],
                           capture_output=True, text=True)
    if frames == 1500:
        check(int(r.stdout) == frames * 65537 + 2 and not r.stderr, "a long line in little memory", r)
    else:
        check(int(r.stdout) == 0 and "MB of text" in r.stderr, "too much text", r)

done()
