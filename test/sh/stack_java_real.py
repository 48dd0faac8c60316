#!/usr/bin/env python3
# descry stack shows the Java functions of real programs, equal to what AsyncGetCallTrace() says at the same instruction: the processes are
# stopped at random moments. JAVAS: homes of the JVMs to compare, instead of Debian's; SAMPLES: how many stacks of each program and mode.
# timeout: 600
import atexit
import collections
import os
import random
import re
import shutil
import tempfile

import real_java
from at_signal import *
from checks import *
from jvms import java_homes

SAMPLES = int(os.environ.get("SAMPLES", "15"))
TMP = tempfile.mkdtemp(prefix="descry-stack-java-real-")
atexit.register(shutil.rmtree, TMP, True)
INLINED = 6  # functions inlined into each other, at most
MODES = ([], ["-XX:+UseZGC"], ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"])


def build(home):
    with open(TMP + "/agent.c", "w") as f:
        f.write(real_java.AGENT)
    include = home + "/include"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-I", include, "-I", include + "/linux", "-o", TMP + "/agent.so", TMP + "/agent.c"], check=True)
    for name, text in real_java.PROGRAMS.items():
        with open(TMP + "/%s.java" % name, "w") as f:
            f.write(text)
        subprocess.run([home + "/bin/javac", "-g", "-d", TMP, TMP + "/%s.java" % name], check=True)


def without_address(name):
    """The class of a lambda has an address or a number behind it."""
    return re.sub(r"(/|\.|\+)0x[0-9a-f]+", "", name)


def ours_of(block):
    """The Java frames among the native ones, which have an offset, and the JVM's own."""
    lines = re.findall(r"^ +([^`\s]+)`(\S+?)(?::(\d+))?$", block, re.M)
    return [(without_address(name), file, int(line or 0)) for file, name, line in lines if file != "[jvm]" and not re.search(r"\+0x[0-9a-f]+$", name)]


def theirs_of(said):
    """None: the JVM does not say it, with its number of the reason."""
    n, *rows = said.splitlines()
    if int(n) <= 0:
        return int(n)
    return [(without_address(name), os.path.basename(file), int(line)) for name, file, line in (r.split("\t") for r in rows)]


OWN = "GC Thread", "G1 ", "Z", "VM ", "C1 ", "C2 ", "Sweeper", "Signal", "Service", "Monitor", "Common-Cleaner", "Notification", "java"


def compare(home, program, mode):
    name, out = "%s %s %s" % (home, program, " ".join(mode)), TMP + "/said"
    p = subprocess.Popen([home + "/bin/java", "-Xmx128m", *mode, "-agentpath:%s/agent.so=%s" % (TMP, out), "-cp", TMP, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    done, frames, kinds, unsaid, unlike = 0, 0, collections.Counter(), collections.Counter(), []
    try:
        check(p.stdout.readline() == b"ready\n", name, "is ready")
        while done < SAMPLES:
            tid = random.choice(threads_except(p.pid, OWN))
            got = sample(p.pid, out, tid)
            if got is None:
                raise SystemExit("FAILED: %s has ended" % name)
            if not got:
                continue
            block, theirs = threads(got[0]).get(tid, ""), theirs_of(got[1])
            if isinstance(theirs, int):
                unsaid[theirs] += 1
                continue
            ours = ours_of(block)
            done += 1
            frames += len(theirs)
            kind = difference(ours, theirs, block)
            kinds[kind] += 1
            if kind == "unlike":
                unlike.append("ours   %s\ntheirs %s\n%s" % (ours, theirs, block))
        print("%s: %d stacks, %.1f frames each: %s; not said by the JVM: %s" % (name, done, frames / done, dict(kinds), dict(unsaid)))
        check(not unlike, name, "unlike", "\n".join(unlike[:3]))
        check(kinds["inlined"] + kinds["clone"] <= max(3, done * 0.1), name, "most are equal", kinds)
    finally:
        p.kill()
        p.wait()


def difference(ours, theirs, block):
    """line: the innermost one. The interpreter writes its place to memory when it calls; descry reads the register, which is newer.
    inlined: the functions that were inlined at the innermost instruction. Where the JVM's tables have no entry for it, AsyncGetCallTrace()
    takes the next one, and descry leaves out those which the entries beside it do not agree on.
    clone: the thread begins another one, in instructions of the C library that have no unwind table."""
    if ours == theirs:
        return "equal"
    if ours and [f[:2] for f in ours] == [f[:2] for f in theirs] and ours[1:] == theirs[1:]:
        return "line"
    same = 0
    while same < min(len(ours), len(theirs)) and ours[-1 - same] == theirs[-1 - same]:
        same += 1
    if same and max(len(ours), len(theirs)) - same <= INLINED:
        return "inlined"
    return "clone" if not ours and "clone" in block.split("\n")[0] else "unlike"


def main():
    homes = java_homes()
    build(homes[0])
    for home in homes:
        for program in os.environ.get("PROGRAMS", "").split() or real_java.PROGRAMS:
            for mode in MODES:
                compare(home, program, mode)


main()
done()
