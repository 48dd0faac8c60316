#!/usr/bin/env python3
# perf.data read directly: the result equals folding the output of perf script, for data written to a file, to a pipe
# or compressed.
# serial
import os
import shutil
import struct
import subprocess
import tempfile

from checks import *

if not shutil.which("perf"):
    skip("perf is not installed")

DESCRY = os.environ["DESCRY"]
TMP = tempfile.TemporaryDirectory()

# Names that no other symbol has, and frame pointers: perf and descry find one name for each address.
SOURCE = """
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) static void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void work_light(void) { spin(20000); sink++; }
__attribute__((noinline)) void work_heavy(void) { spin(60000); sink++; }
__attribute__((noinline)) long work_deep(long n) { if (n) work_deep(n - 1); else work_heavy(); return sink++; }
int main(void) { for (;;) { work_light(); work_deep(20); getppid(); } }
"""


def run(*argv, rc=0, **more):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    check(r.returncode == rc, argv, r.returncode, r.stderr.decode(errors="replace"))
    return r


def fold(*argv, **more):
    r = run(DESCRY, "flame", "--folded", *argv, **more)
    return {l.rsplit(b" ", 1)[0]: int(l.rsplit(b" ", 1)[1]) for l in r.stdout.splitlines()}, r.stderr.decode()


program = os.path.join(TMP.name, "spinner")
open(program + ".c", "w").write(SOURCE)
run("cc", "-O0", "-fno-omit-frame-pointer", "-o", program, program + ".c")


def record(name, *options):
    path = os.path.join(TMP.name, name)
    r = subprocess.run(["perf", "record", "-q", "-g", "-o", path, *options, "--", "timeout", "2", program],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not os.path.exists(path) or not os.path.getsize(path):
        skip("perf cannot record here: " + r.stderr.decode().strip().replace("\n", " "))
    return path


for name, options in (("plain", ["-F", "997", "-a"]), ("zstd", ["-F", "997", "-z", "-a"]), ("count", ["-c", "1000003", "-e", "cpu-clock"])):
    path = record(name, *options)
    r = subprocess.run(["perf", "script", "--no-inline", "-i", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode:
        print("this perf cannot do %s: %s" % (options, r.stderr.decode().strip()[:200]))
        continue
    ours, remarks = fold(path)
    theirs, _ = fold(input=r.stdout)
    check(sum(ours.values()) == sum(theirs.values()) > 0, name, "totals", sum(ours.values()), sum(theirs.values()))
    comms = [{}, {}]
    for folded, by in zip((ours, theirs), comms):
        for k, n in folded.items():
            # a task that is gone has the number -1, which the text's readers take for a part of the name
            comm = b":-1" if k.startswith(b":-1") else k.split(b";")[0]
            by[comm] = by.get(comm, 0) + n
    check(comms[0] == comms[1], name, "each command's total")
    mine = [{k: n for k, n in f.items() if k.startswith(b"spinner;") and b";main;" in k and b"getppid" not in k} for f in (ours, theirs)]
    # libc has several names for the function that calls main(); the frames from main on are compared
    cut = [{}, {}]
    for folded, by in zip(mine, cut):
        for k, n in folded.items():
            by[k[k.index(b";main;"):]] = by.get(k[k.index(b";main;"):], 0) + n
    check(cut[0] == cut[1] and len(cut[0]) > 1, name, "stack for stack", set(cut[0].items()) ^ set(cut[1].items()))
    check(any(b"work_deep;work_deep;work_heavy;spin" in k for k in cut[0]), name, "the deep stack", list(cut[0])[:3])
    pid, _ = fold("--pid", path)
    check(sum(pid.values()) == sum(ours.values()) and any(k.startswith(b"spinner-") for k in pid), name, "--pid")
    bare, _ = fold("--no-symbols", path)
    check(sum(bare.values()) == sum(ours.values()) and any(b"[spinner]" in k for k in bare), name, "--no-symbols")

# To a pipe. An ended program has no names, and this is reported.
pipe = os.path.join(TMP.name, "pipe")
with open(pipe, "wb") as f:
    subprocess.run(["perf", "record", "-q", "-F", "997", "-g", "-o", "-", "--", "timeout", "1", program], stdout=f,
                   stderr=subprocess.DEVNULL)
piped, _ = fold(input=open(pipe, "rb").read())
check(any(b"work_heavy;spin" in k for k in piped), "from a pipe", list(piped)[:3])
os.rename(program, program + ".away")
gone, remarks = fold(os.path.join(TMP.name, "plain"), env=dict(os.environ, HOME=TMP.name))
check("cannot be read" in remarks and any(b"[spinner]" in k for k in gone), "a file that is gone", remarks)
open(program, "wb").write(open("/bin/true", "rb").read())
gone, remarks = fold(os.path.join(TMP.name, "plain"), env=dict(os.environ, HOME=TMP.name))
check("changed since" in remarks and not any(b"spin;" in k for k in gone), "another file in its place", remarks)

# Stacks copied with each sample, of a program without frame pointers: unwound to the end, by the frames perf finds, too.
open(program + "2.c", "w").write(SOURCE.replace("work_", "copy_").replace("return sink++; }", "volatile char pad[200]; pad[0] = 1; return sink += pad[0]; }"))
run("cc", "-O2", "-g0", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", program + "2", program + "2.c")
program += "2"
for name, size in (("dwarf", "16384"), ("cut", "1024")):
    path = record(name, "-F", "997", "--call-graph", "dwarf," + size)
    ours, remarks = fold(path)
    r = subprocess.run(["perf", "script", "--no-inline", "-i", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    theirs, _ = fold(input=r.stdout)
    check(sum(ours.values()) == sum(theirs.values()) > 0, name, "totals", sum(ours.values()), sum(theirs.values()))
    mine = {k: n for k, n in ours.items() if k.startswith(b"spinner2;") and (b";spin" in k or b"copy_deep" in k)}
    whole = {k: n for k, n in mine.items() if b";_start;" in k and b";main;" in k}
    if name == "cut":
        check("longer than the bytes that perf copied" in remarks, "a copy that is too short", remarks)
        check(any(b"copy_deep;copy_heavy;spin" in k and b";main;" not in k for k in mine), "the part that was copied", list(mine)[:3])
        continue
    check(sum(whole.values()) > 0.9 * sum(mine.values()) > 0, "copied stacks reach their end", list(mine)[:5], remarks)
    check(any(k.endswith(b";main" + b";copy_deep" * 21 + b";copy_heavy;spin") for k in whole), "the deep copied stack", list(whole)[:5])
    cut = [{}, {}]
    for folded, by in zip((ours, theirs), cut):
        for k, n in folded.items():
            if k.startswith(b"spinner2;") and b";main;" in k and b"getppid" not in k:
                by[k[k.index(b";main;"):]] = by.get(k[k.index(b";main;"):], 0) + n
    if cut[1]:  # this perf can unwind
        both = sum(min(n, cut[0].get(k, 0)) for k, n in cut[1].items())
        check(both >= 0.98 * sum(cut[1].values()), "perf's stacks are ours", both, sum(cut[1].values()), set(cut[1]) - set(cut[0]))
    run(DESCRY, "flame", "--folded", "--no-symbols", path)
    data = open(path, "rb").read()
    for n in (len(data) // 3, len(data) // 2):
        r = subprocess.run([DESCRY, "flame", "--folded"], input=data[:n], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(r.returncode in (0, 1) and r.stderr, "copied stacks cut at", n, r.returncode)

# Incomplete recordings.
data = open(os.path.join(TMP.name, "plain"), "rb").read()
data_at, data_size = struct.unpack_from("<QQ", data, 40)
behind = data_at + data_size  # where the tables of features begin
for n in (9, 50, 104, 200, 500, len(data) // 2, behind - 3, behind, behind + 20, (behind + len(data)) // 2, len(data) - 1):
    r = subprocess.run([DESCRY, "flame", "--folded"], input=data[:n], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(r.returncode in (0, 1) and r.stderr, "cut at", n, r.returncode)
data = open(pipe, "rb").read()
for n in (len(data) // 2 | 1, len(data) - 1):  # records begin at multiples of 8
    r = subprocess.run([DESCRY, "flame", "--folded"], input=data[:n], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(r.returncode in (0, 1) and r.stderr, "a pipe cut at", n, r.returncode)
done()
