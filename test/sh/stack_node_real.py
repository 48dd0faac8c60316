#!/usr/bin/env python3
# jstack() and descry stack show the JavaScript functions of real programs of Node.js, equal to what V8 itself says at the same moment, frame by
# frame with lines. An addon interrupts the program's threads at random moments. In V8's callback it calls v8::StackTrace::CurrentStackTrace(),
# and a function on which descry has a probe, or it stops the process. NODES: programs to compare in all ways, instead of the installed one, and
# those of tools/install-nodes with one engine. PROGRAMS, ENGINES: a choice of them. SAMPLES: how many stacks of each.
# timeout: 1200
import collections
import itertools

from node_truth import *

SAMPLES = int(os.environ.get("SAMPLES", "150"))
# A function's name is known when the tracer has read it, which it does when a walk meets the function for the first time. So many stacks
# are taken before those that are counted; they may lack names.
FIRST = 500
STOPS = max(SAMPLES // 20, 5)  # descry stack reads much for each
ENGINES = os.environ.get("ENGINES", "kernel inproc stop").split()
MODES = ([], ["--maglev", "--always-sparkplug"])
GOOD = "equal", "cut"
WORDS_MAX = 120  # a stack has 127 words: outer frames that do not fit are left out
CLAUSES = """pid$target:truth.node:truth_now:entry { printf("stack %d\\n", arg0); jstack(200); }
pid$target:truth.node:truth_end:entry { exit(0); }"""


def said_by_v8(text):
    """{serial number: (thread, frames)}"""
    found = {}
    for n, tid, rows in re.findall(r"^stack (\d+) (\d+)\n((?:.*\t.*\t-?\d+\n)*)end$", text, re.M):
        frames = [row.split("\t") for row in rows.splitlines()]
        found[int(n)] = int(tid), [shown((name, file, max(int(line), 0))) for name, file, line in frames]
    return found


def printed(text):
    """{serial number: lines}"""
    return {int(n): block for n, block in re.findall(r"^stack (\d+)\n((?:^ +\S.*\n|\n)*)", text, re.M)}


def can_be(ours, theirs):
    """Are these frames those, in true order, as far as names are known? One word may be several functions."""
    rest = iter(theirs)
    return all(any(a == b for b in rest) for a in ours if a)


def difference(ours, theirs, words):
    """What is unlike: nothing; names that could not be read any more, or that only a function's object has; lines; or frames. A stack of
    as many words as fit ends early. V8 leaves out functions that are built into it; stack_node.py compares these."""
    ours = [f for f in ours if f is None or f[1] != "[v8]"]
    cut = words >= WORDS_MAX and len(ours) < len(theirs)
    pairs = list(zip(ours, theirs))
    if None in ours and can_be(ours, theirs):
        return "no name"
    if len(ours) != len(theirs) and not cut:
        return "unlike"
    if all(a == b for a, b in pairs):
        return "cut" if cut else "equal"
    if all(a and a[:2] == b[:2] and a[2] in (0, b[2]) for a, b in pairs):
        return "no line"
    if all(a and a[1:] == b[1:] for a, b in pairs):
        return "another name"
    return "unlike"


def unlike_parts(ours, theirs):
    """What they do not have in common, from the innermost function and from the outermost one on."""
    ours = [f for f in ours if f is None or f[1] != "[v8]"]
    while ours and theirs and ours[-1] == theirs[-1]:
        ours, theirs = ours[:-1], theirs[:-1]
    while ours and theirs and ours[0] == theirs[0]:
        ours, theirs = ours[1:], theirs[1:]
    return theirs, ours


def take_traced(said, engine):
    """What a probe prints at each stack that V8 says."""
    started = begin_traced(said, "-x", "engine=" + engine, "-n", CLAUSES)
    text, theirs = end_traced(said, started), said_by_v8(said.text())
    return [(n > FIRST, named(block), theirs[n][1], block) for n, block in printed(text).items() if n in theirs]


def is_stopped(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


def take_stopped(said):
    """What descry stack prints at each stack that V8 says. The process has stopped itself."""
    found, pid, before = [], said.p.pid, 0
    said.begin()
    while len(found) < STOPS:
        wait_for(lambda: is_stopped(pid), said, "the process stops")
        size = os.path.getsize(said.file)
        tid, theirs = max(said_by_v8(said.text()[before:]).items())[1]
        r = descry("stack", "-p", str(pid))
        block = re.search(r"^  thread %d[^\n]*\n((?:    .*\n?)*)" % tid, r.out, re.M)
        found.append((True, named(block.group(1)) if block else [], theirs, block.group(1) if block else r.out))
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not is_stopped(pid) or os.path.getsize(said.file) > size, said, "the process goes on")
        before = size
    return found


def compare(node, flags, program, engine):
    name = "%s %s, %s, %s" % (node, " ".join(flags), program, engine)
    said = Said(node, flags, program, STOPS, TRUTH_STOPS="1") if engine == "stop" else Said(node, flags, program, SAMPLES + FIRST)
    try:
        found = take_stopped(said) if engine == "stop" else take_traced(said, engine)
    finally:
        said.end()
    kinds, first, unlike, frames = collections.Counter(), collections.Counter(), {}, 0
    for counts, ours, theirs, block in found:
        frames += len(theirs) if counts else 0
        kind = difference(ours, theirs, len(block.splitlines()))
        (kinds if counts else first)[kind] += 1
        if kind not in GOOD:
            unlike.setdefault(kind, []).append("  theirs %s\n  ours   %s\n%s" % (*unlike_parts(ours, theirs), block))
    n = sum(kinds.values())
    print("%s: %d stacks, %.1f frames each: %s; before: %s" % (name, n, frames / max(n, 1), dict(kinds), dict(first)))
    for kind, texts in unlike.items():
        print("%s: %s" % (kind, "\n".join(texts[:int(os.environ.get("SHOW", "1"))])))
    check(n >= (STOPS if engine == "stop" else SAMPLES) * 0.95, name, "has stacks", n)
    check(sum(kinds[k] for k in GOOD) >= n * 0.99 - 2, name, "equal", kinds)
    check(kinds["unlike"] + first["unlike"] <= (n + sum(first.values())) * 0.002, name, "unlike", kinds, first)
    return kinds


def main():
    build()
    total = collections.Counter()
    for node, engine in itertools.product(nodes(), ENGINES):
        if "NODES" not in os.environ and node != nodes()[0] and engine != ENGINES[0]:
            continue
        for program, flags in itertools.product(os.environ.get("PROGRAMS", "").split() or real_node.PROGRAMS, MODES):
            if program == "npm" and not npm_of(node):
                print("no npm here: its packages are not compared")
            elif accepts(node, flags):
                total += compare(node, flags, program, engine)
    print("in all: %d stacks: %s" % (sum(total.values()), dict(total)))


main()
done()
