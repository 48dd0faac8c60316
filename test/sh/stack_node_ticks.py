#!/usr/bin/env python3
# jstack() shows the JavaScript functions of real programs of Node.js at any instruction, as V8's own profiler does: it sends SIGPROF to the
# threads and walks their stacks in the handler. A probe at the delivery of the signal takes the stack at the same instruction. Compared are
# the functions that have a script, with the lines of their calls. NODES, PROGRAMS: a choice of them; SAMPLES: how many stacks of each.
# timeout: 600
import bisect
import collections

from node_truth import *

# functions to which Node.js gives the names of others
RENAMED = ("fn", "node:internal/util"), ("wrappedFn", "node:internal/errors")
SAMPLES = int(os.environ.get("SAMPLES", "300"))
CLAUSES = """proc:::signal-handle /pid == $target && args[0] == SIGPROF/ { printf("stack %d %d\\n", tid, timestamp); jstack(200); }
pid$target:truth.node:truth_end:entry { exit(0); }"""


def printed(text):
    """{thread: [(time, lines)]}"""
    found = collections.defaultdict(list)
    for tid, at, block in re.findall(r"^stack (\d+) (\d+)\n((?:^ +\S.*\n|\n)*)", text, re.M):
        found[int(tid)].append((int(at), block))
    return {tid: sorted(rows) for tid, rows in found.items()}


def said_by_v8(text):
    """[(thread, time, frames, lines of the innermost one)]. A function without a script, as of V8's own code, is left out."""
    for tid, at, rows in re.findall(r"^sample (\d+) (\d+)\n((?:.*\n)*?)end$", text, re.M):
        rows = [row.split("\t") for row in rows.splitlines()]
        frames = [(row[0] if row[0] != "(anonymous)" else None, row[1], int(row[2])) for row in rows if row[1]]
        yield int(tid), int(at) * 1000, [shown(f) for f in frames], {int(n) for row in rows[:1] for n in row[3:]}


def are_same(a, b):
    """Is this the function of the profiler, which does not know the name that only a function's object has?"""
    return a[1] == b[1] and (a[0] == b[0] or "[" in a[0] or a[0].startswith("__node_internal_") or b[:2] in RENAMED)


def are_like(ours, theirs, lines):
    """lines: what the line of the innermost function may be. V8's profiler has no line for what is not called there: 0."""
    if len(ours) != len(theirs) or not all(a and are_same(a, b) for a, b in zip(ours, theirs)):
        return False
    return all(a[2] == b[2] for a, b in zip(ours[1:], theirs[1:])) and ours[0][2] in lines | {0}


def has_all(ours, theirs):
    """Has ours all of these, in true order? The profiler lacks a function that only begins, or its caller. The line of a function is that of
    the call of the next one, if both have the same next one."""
    at, before = 0, None
    for f in theirs:
        while at < len(ours) and not are_same(ours[at], f):
            at += 1
        if at == len(ours) or before is not None and at == before + 1 and ours[at][2] != f[2]:
            return False
        before, at = at, at + 1
    return True


def difference(ours, theirs, lines):
    """more: the profiler has fewer. inlined: at the innermost instruction, for which only the profiler has had V8 make tables."""
    ours = [f for f in ours if f is None or f[1] != "[v8]"]
    if are_like(ours, theirs, lines):
        return "equal"
    if None in ours:
        return "no name"
    if len(ours) > len(theirs) and has_all(ours, theirs):
        return "more"
    if len(ours) < len(theirs) and has_all(theirs, ours):
        return "inlined"
    if len(ours) == len(theirs) and all(are_same(a, b) for a, b in zip(ours, theirs)):
        return "innermost line" if ours[1:] == theirs[1:] else "lines"
    return "unlike"


def compare(node, program):
    name = "%s, %s" % (node, program)
    said = Said(node, [], program, 0, TRUTH_PROFILES="1")
    try:
        started = begin_traced(said, "-x", "engine=kernel", "-n", CLAUSES)
        taken = lambda: open(TMP + "/out", encoding="utf-8").read().count("\nstack ")
        wait_for(lambda: taken() >= SAMPLES, said, "samples")
        said.pause()
        ours, theirs = printed(end_traced(said, started)), list(said_by_v8(said.text()))
    finally:
        said.end()
    kinds, unlike, none, paired = collections.Counter(), {}, 0, set()
    # V8 also takes samples without a signal: when it gives optimized code up
    for tid, at, frames, lines in sorted(theirs, key=lambda s: s[1]):
        rows = ours.get(tid, [])
        i = bisect.bisect_right(rows, (at + 1000, "")) - 1
        if i < 0 or not frames or (tid, i) in paired:
            none += 1
            continue
        paired.add((tid, i))
        kind = difference(named(rows[i][1]), frames, lines)
        kinds[kind] += 1
        if kind != "equal":
            unlike.setdefault(kind, []).append("  theirs %s %s\n  ours   %s\n%s" % (frames[:12], lines, named(rows[i][1])[:12], rows[i][1]))
    n = sum(kinds.values())
    print("%s: %d stacks: %s; %d without functions" % (name, n, dict(kinds), none))
    for kind, texts in unlike.items():
        print("%s: %s" % (kind, "\n".join(texts[:int(os.environ.get("SHOW", "1"))])))
    # where the profiler does not know the line of a call, it has that of the function's beginning
    check(n and kinds["unlike"] <= n * 0.02 + 3 and kinds["lines"] <= n * 0.05 + 3, name, "unlike", kinds)


def main():
    build()
    for node in nodes():
        for program in os.environ.get("PROGRAMS", "").split() or real_node.PROGRAMS:
            if program != "npm" or npm_of(node):
                compare(node, program)


main()
done()
