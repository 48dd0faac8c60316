#!/usr/bin/env python3
# descry list: providers, and probes with types, price, stability and the reason why one is unavailable, as text and as JSON.
import json
import os
import subprocess
import sys
from checks import *

DESCRY = os.environ["DESCRY"]


def run(*args):
    return subprocess.run([DESCRY, *args], capture_output=True, text=True)


def objects(*args):
    return [json.loads(line) for line in run("list", "--json", *args).stdout.splitlines()]


providers = objects()
names = [p["provider"] for p in providers]
check(all(n in names for n in ("syscall", "sched", "io", "pid", "usdt", "profile")), "providers", names)
listed = run("-l", "-n", "syscall:::").stdout.count("\n") - 1
check([p["probes"] for p in providers if p["provider"] == "syscall"] == [listed], "how many probes", listed, providers)
for p in providers:
    check(p["probes"] or p["unavailable"] or p["provider"] in ("pid", "plt", "plockstat", "node", "usdt"), "no probes without a reason", p)

p = objects("syscall::openat:entry")
check(len(p) == 1 and p[0]["arguments"][:2] == ["int", "const char *"] and p[0]["price_ns"] > 0, "openat", p)
check(p[0]["available"] and p[0]["unavailable"] is None and set(p[0]["stability"]) == {"names", "arguments"}, "openat", p)
found = objects("getppid")
check({o["name"] for o in found} == {"entry", "return"} and {o["function"] for o in found} == {"getppid"}, "a word", found)
check({o["provider"] for o in objects("sched")} == {"sched"}, "a provider's name lists its probes alone")
keys = [(o["provider"], o["module"], o["function"], o["name"]) for o in objects("open", "openat", "syscall::open*:")]
check(len(keys) == len(set(keys)) > 4, "each probe once")
for o in objects("sysinfo"):
    check(o["available"] == (o["unavailable"] is None) and o["available"] == (o["price"] is not None), "reason or price", o)

text = run("list", "syscall::openat:entry").stdout
for part in ("syscall:vmlinux:openat:entry\n", "arguments    args[0] int, args[1] const char *", "a firing ", "stability "):
    check(part in text, "text: " + part, text)

with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
    pid = str(cat.pid)
    while os.path.basename(os.readlink("/proc/%s/exe" % pid)) == os.path.basename(os.readlink("/proc/self/exe")):
        pass
    while "libc.so" not in open("/proc/%s/maps" % pid).read():
        pass
    p = objects("-p", pid, "pid$target:libc:malloc:entry")
    check(p and p[0]["provider"] == "pid" + pid and p[0]["inside"] == "patched jump" and p[0]["price_ns"] < 100, "malloc", p)
    check(any(o["function"] == "malloc" for o in objects("-p", pid, "malloc")), "a word in a process")
    cat.stdin.close()

# the interpreter of a process: this one is of Python
runtimes = [o for o in objects("-p", str(os.getpid())) if o["type"] == "runtime"]
version = "%d.%d.%d" % sys.version_info[:3]
known = sys.version_info < (3, 14) and sys.implementation.name == "cpython"
check(not known or [(o["pid"], o["language"], o["version"]) for o in runtimes] == [(os.getpid(), "python", version)], "a runtime", runtimes)
text = run("list", "-p", str(os.getpid())).stdout
check(not known or "process %d runs python (%s):" % (os.getpid(), version) in text, "a runtime as text", text)

for args, status, message in ((["nosuchthing"], 1, "no probe has nosuchthing"), (["syscall::nosuch:entry"], 1, "does not match"),
                              (["-p", "0"], 2, "-p wants a process id"), (["--nosuch"], 2, "descry list --help")):
    r = run("list", *args)
    check(r.returncode == status and message in r.stderr and "{" not in r.stdout, "list " + " ".join(args), r)
for args, status, message in ((["nosuch"], 2, "no page about nosuch"), (["flam"], 2, "did you mean flame?")):
    r = run("help", *args)
    check(r.returncode == status and message in r.stderr and not r.stdout, "help " + " ".join(args), r)
overview = run("--help").stdout
check(overview == run("-h").stdout == run("help").stdout and run("-h").returncode == 0, "-h, --help and help are one")
check(run().stderr == overview and run().returncode == 2, "nothing at all")
r = run("flam")
check(r.returncode == 2 and "there is no command flam (did you mean flame?)" in r.stderr, "a command misspelt", r)
done()
