#!/usr/bin/env python3
# The commands of README.md and of the manual pages run and give an answer. Where the page shows an output, its lines
# appear: lines without a number and error messages literally, others by their shape. A command that an ordinary user
# may not run reports the missing privilege.
# serial
# timeout: 600
import concurrent.futures
import glob
import struct
import pages
from live import *

# Names in the pages' commands, and the test's files for them. Long runs are shortened.
FILES = {"before.folded": "a;b 10\na;c 5\n", "after.folded": "a;b 5\na;c 9\n", "Makefile": "all:\n\tcat Makefile >/dev/null\n",
         "access.log": "".join("%d.5 - - - - - GET - %d\n" % (t, t % 40 + 1) for t in range(1, 200)), "x.d": "BEGIN { trace(foo(1)); }\n"}
SHORTER = [("-t 10 ", "-t 1 "), ("-t 30 ", "-t 1 "), ("-t 5", "-t 1"), ("tick-10s", "tick-1s"), ("tick-5s", "tick-1s"), ("sleep 10", "sleep 1"),
           ("perf record ", "perf record -o perf.data "), ("ssh other ", ""), ("before.dma after.dma", "app.dma app.dma"), ("-c program", "-c 'sh -c \"sleep 0.3; true\"'"), ("./app", "ls -l /")]
DUMPS = {"shop.hprof": 200000, "monday.hprof": 100, "tuesday.hprof": 200000}  # heap dumps of Java, with so many bytes in an array
WRITERS = {"perf ": "perf.data", "descry malloc record ": "app.dma"}  # the files that other commands read
knobs = sorted(glob.glob("/sys/block/*/queue/read_ahead_kb"))


def heap_dump(n):
    """A heap dump of Java: an array of n bytes, and a root that holds it."""
    heap = struct.pack(">BQQ", 1, 0x1000, 1) + struct.pack(">BQIIB", 0x23, 0x1000, 0, n, 8) + bytes(n)
    return b"JAVA PROFILE 1.0.2\0" + struct.pack(">IQBII", 8, 0, 0x0c, 0, len(heap)) + heap


def prepared(c, busy, python):
    process = python if "heap alloc" in c.text else busy
    text = c.text.replace("1234", str(process.pid)).replace("4711", str(process.pid))
    if process is python:
        text = text.replace("--for 10", "--for 1")
        c.shown = []  # another program than the manual's
    for old, new in SHORTER:
        text = text.replace(old, new)
    if "--apply" in text and knobs:  # the value it has: nothing of the machine changes
        value = open(knobs[0]).read().strip()
        text = re.sub(r"block\.\w+\.read_ahead_kb=\d+", "block.%s.read_ahead_kb=%s --journal tuned" % (knobs[0].split("/")[3], value), text)
        c.shown = []
    if "heal" in text:
        c.shown = []  # nothing is to be healed here: test/sh/inproc_alone.py does that
    written = re.search(r"(?:>|-o) ?(\w+\.(?:svg|html))$|-o (\w+\.(?:svg|html)) ", text)
    if written:
        text += " && wc -c " + (written[1] or written[2])
    c.text = text
    return c


def judge(c, r, who):
    wrong = not c.error and pages.failed(r)
    if who != "root" and wrong:
        return check(pages.told(r), "%s is told what is missing: %s" % (who, c), r.returncode, r.stderr[-800:])
    answer = r.stdout + (r.stderr if c.error or re.match("time |perf |descry calls |descry malloc record ", c.text) else "")  # these write their answer there
    check(not wrong and answer.strip(), "%s: %s" % (who, c), r.returncode, r.stderr[-800:], r.stdout[-500:])
    if who == "root" or c.prompt == "$":
        other = pages.differences(c, answer, c.error)
        check(not other, "%s shows other lines: %s" % (who, c), other, answer[-2000:])
    return None


def table(readme):
    """The claims: each has a way to check it, and each way is there."""
    names = [f[len("test/"):].replace("/test_", "/") for f in glob.glob("test/**/*", recursive=True)]
    rows = re.findall(r"^\|([^|]*)\|([^|]*(?:`[^`]*`[^|]*)*)\|$", readme[readme.index("| claim |"):], re.M)[2:]
    check(len(rows) > 15 and len(names) > 500, "claims and tests", len(rows), len(names))
    for claim, ways in rows:
        for way in re.findall(r"`([^`]+)`", ways):
            word = way.split()[0]
            if word == "make":
                pattern = re.search(r"T=(\S+)", way)
                check(re.search(r"^%s:" % way.split()[1], open("Makefile").read(), re.M), "no such target", way)
                check(not pattern or any(pattern[1] in name for name in names), "no test of that name", way)
            elif "/" in word:
                check(os.access(word, os.X_OK), "no such program", way)
    return [pages.Command("README.md", "", way) for _, ways in rows for way in re.findall(r"`((?:time )?descry [^`]+|ldd [^`]+|strip [^`]+)`", ways)]


readme = open("README.md").read()
found, programs = pages.commands("README.md"), []
check(len(found) >= 10 and all(c.prompt for c in found), "README: commands, each with its prompt", len(found))
found += table(readme)
for page in sorted(glob.glob("man/*.[17]")):
    more, displays = pages.manual(page)
    found += more
    programs += [(page, d) for d in displays]
check(len(found) > 35, "commands of the manual pages", len(found))

PYTHON = "class Foo: pass\nkept = []\nwhile 1:\n  kept = [Foo() for i in range(1000)] + kept[:9000]\n"
with pages.Player(DESCRY) as player, subprocess.Popen(pages.NOBODY + ["sh", "-c", "while :; do :; done"]) as busy, \
        subprocess.Popen(pages.NOBODY + ["/usr/bin/python3", "-c", PYTHON]) as python:
    try:
        for name, text in FILES.items():
            with open(os.path.join(player.dir, name), "w") as f:
                f.write(text)
        for name, n in DUMPS.items():
            with open(os.path.join(player.dir, name), "wb") as f:
                f.write(heap_dump(n))
        core = "%s/core.%d" % (player.dir, busy.pid)
        made = sh("gdb -q -batch -p %d -ex 'generate-core-file %s'" % (busy.pid, core))
        if check(os.path.exists(core), "gdb writes no core file (tools/install-deps --test)", made.stderr):
            os.chmod(core, 0o644)
        os.mkdir(player.dir + "/build")
        os.symlink(player.dir + "/bin", player.dir + "/build/cmd")
        os.chmod(player.dir, 0o777)
        for c in found:
            c.error = any("error:" in line for line in c.shown)
        if not shutil.which("perf"):
            check(False, "perf is not installed (tools/install-deps --test)")
        every = [prepared(c, busy, python) for c in found]
        for who, before in ("root", ()), ("an ordinary user", pages.NOBODY):
            for old in glob.glob(player.dir + "/*.svg") + glob.glob(player.dir + "/*.html") + glob.glob(player.dir + "/perf.data*") + \
                    glob.glob(player.dir + "/app.dma"):
                os.unlink(old)
            rest = [c for c in every if who == "root" or c.prompt != "#"]
            first = [(c, file) for c in rest for begin, file in WRITERS.items() if c.text.startswith(begin)]
            for c, file in first:
                r = player.play(c, before)
                judge(c, r, who)
                rest = [x for x in rest if x is not c and not (pages.failed(r) and file in x.text)]
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for c, r in zip(rest, pool.map(lambda c: player.play(c, before), rest)):
                    judge(c, r, who)
    finally:
        busy.kill()
        python.kill()
    for page, text in programs:
        if text.startswith("x.d:"):
            r = player.play(pages.Command(page, "", "descry -s x.d"))
            check(" ".join(text.split()) in " ".join(r.stderr.split()), "the error is as it is shown", page, r.stderr)
        elif re.search(r":entry", text):
            with open(player.dir + "/y.d", "w") as f:
                f.write(text)
            check(not pages.failed(player.play(pages.Command(page, "", "descry -e -s y.d"))), "a program that is right", page, text)
done()
