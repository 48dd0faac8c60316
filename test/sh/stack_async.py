#!/usr/bin/env python3
# descry stack --async and heap --async show the tasks of asyncio, equal to what the interpreter says when a thread that is no loop's walks
# from each task's coroutine by cr_await, gi_yieldfrom and ag_await. All loops wait meanwhile, so nothing moves. PYTHONS: the interpreters to
# compare, instead of Debian's and those of tools/install-runtimes.
import os
import re
import subprocess

from runtime_versions import *

PROGRAM = r"""
import asyncio, contextlib, functools, gc, json, os, sys, threading, types
NEW = sys.version_info
lock = threading.Lock()
lock.acquire()
loops, held = [], []


async def leaf(event):
    await event.wait()


async def middle(event):
    x = await leaf(event)
    return x


class Shop(object):
    async def order(self, event):
        return [await m for m in [middle(event)]]

    def __await__(self):
        return (yield from middle(self.event).__await__())

    async def __aenter__(self):
        await leaf(self.event)

    async def __aexit__(self, *what):
        pass


async def awaits_object(event):
    shop = Shop()
    shop.event = event
    await shop


async def enters(event):
    shop = Shop()
    shop.event = event
    async with shop:
        pass


async def numbers(event):
    yield 1
    await middle(event)
    yield 2


async def iterates(event):
    async for x in numbers(event):
        held.append(x)


async def comprehends(event):
    return [x async for x in numbers(event)]


async def closes(event):
    async def steps():
        try:
            yield 1
        finally:
            await middle(event)
    s = steps()
    await s.asend(None)
    await s.aclose()


@types.coroutine
def old(event):
    yield from leaf(event)


async def awaits_old(event):
    await old(event)


async def sleeps():
    await asyncio.sleep(100000)


async def deep(n, event):
    if n:
        return await deep(n - 1, event)
    await event.wait()


async def handles(event):
    try:
        raise KeyError(1)
    except KeyError:
        await middle(event)
    finally:
        held.append(2)


async def locks(event):
    mine = asyncio.Lock()
    async with mine:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(mine)


async def waits_for_task(task):
    await task


async def gathers(*tasks):
    await asyncio.gather(*tasks)


async def waits(*tasks):
    await asyncio.wait(tasks)


async def shields(task):
    await asyncio.shield(task)


async def in_time(task):
    await asyncio.wait_for(task, 100000)


async def groups(event):
    async with asyncio.TaskGroup() as group:
        task(group.create_task(middle(event)), "grouped 1")
        task(group.create_task(middle(event)), "grouped 2")


# what each task waits for, by names
EDGES = {"task of task": ["leaf"], "gather": ["gathered 1", "gathered 2", "leaf"], "wait": ["waited 1", "waited 2"], "shield": ["shielded"],
         "wait_for": ["in time"], "chain 1": ["chain 2"], "chain 2": ["chain 3"], "group": ["grouped 1", "grouped 2"],
         "crowd": ["crowd %d" % i for i in range(40)], "after running": ["running"], "left over": ["left"], "main": ["last"]}


def task(t, name):
    t.set_name(name)
    held.append(t)
    return t


class Task(asyncio.Task):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.number = 5


async def idle(done):
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    make = lambda coroutine, name: task(loop.create_task(coroutine), name)
    one = make(leaf(event), "leaf")
    held.append(make(middle(event), "unnamed"))
    held.append(loop.create_task(middle(event)))
    for f in Shop().order, awaits_object, enters, iterates, comprehends, closes, awaits_old, handles, locks:
        make(f(event), f.__name__)
    make(sleeps(), "sleeps")
    make(deep(300, event), "deep")
    make(asyncio.sleep(100000), "sleep itself")
    make(waits_for_task(one), "task of task")
    make(gathers(one, make(leaf(event), "gathered 1"), make(leaf(event), "gathered 2")), "gather")
    make(waits(make(leaf(event), "waited 1"), make(leaf(event), "waited 2")), "wait")
    make(shields(make(leaf(event), "shielded")), "shield")
    make(in_time(make(leaf(event), "in time")), "wait_for")
    make(waits_for_task(make(waits_for_task(make(leaf(event), "chain 3")), "chain 2")), "chain 1")
    make(gathers(*[make(leaf(event), "crowd %d" % i) for i in range(40)]), "crowd")
    task(Task(leaf(event), loop=loop), "derived")
    finished = make(asyncio.sleep(0), "finished")
    if NEW >= (3, 11):
        make(groups(event), "group")
    if NEW >= (3, 12):
        task(asyncio.Task(middle(event), loop=loop, eager_start=True), "eager")
    if NEW >= (3, 10):
        async def next_one(event):
            await anext(numbers(event))
            a = numbers(event)
            await a.asend(None)
            await anext(a, 5)
        make(next_one(event), "next_one")
    for _ in range(20):
        await asyncio.sleep(0)
    done.release()
    await make(leaf(event), "last")


def blocks():
    ready.release()
    with lock:
        pass


async def runs():
    blocks()


async def starts(event):
    # the loop runs tasks in the order of their making: "running" is the last
    loop = asyncio.get_running_loop()
    task(loop.create_task(middle(event)), "before running")
    later = loop.create_future()

    async def at_last():
        await later
        await runs()
    running = task(loop.create_task(at_last()), "running")
    task(loop.create_task(waits_for_task(running)), "after running")
    for _ in range(5):
        await asyncio.sleep(0)
    later.set_result(1)
    await asyncio.sleep(0)  # "running" has its turn now


async def also_ready():
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    task(loop.create_task(starts(event)), "ready")
    await leaf(event)


ready = threading.Semaphore(0)


def run_idle():
    loop = asyncio.new_event_loop()
    loops.append((loop, threading.get_native_id()))
    loop.run_until_complete(task(loop.create_task(idle(ready)), "main"))


def run_busy():
    loop = asyncio.new_event_loop()
    loops.append((loop, threading.get_native_id()))
    loop.run_until_complete(task(loop.create_task(also_ready()), "of the busy"))


def run_ended():
    loop = asyncio.new_event_loop()
    loops.append((loop, 0))

    async def begin():
        event = asyncio.Event()
        left = task(loop.create_task(middle(event)), "left")
        task(loop.create_task(gathers(left)), "left over")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    loop.run_until_complete(begin())


def next_of(o):
    for a, b in (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await")):
        if hasattr(o, a):
            return getattr(o, a), getattr(o, b)
    name = type(o).__name__
    if name in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"):
        for x in gc.get_referents(o):
            if hasattr(x, "cr_frame") or hasattr(x, "ag_frame") or hasattr(x, "gi_frame") or type(x).__name__ in ("coroutine_wrapper", "async_generator_asend"):
                return None, x
    return None, None


def place(frame):
    code = frame.f_code
    return [os.path.basename(code.co_filename), getattr(code, "co_qualname", code.co_name), frame.f_lineno or 0]


def awaited(coroutine):
    found = []
    while coroutine is not None:
        frame, coroutine = next_of(coroutine)
        if frame is not None:
            found.append(place(frame))
    return found[::-1]


def executed(t, thread):
    f, found = sys._current_frames()[thread], []
    while f is not None:
        found.append(place(f))
        if f is t.get_coro().cr_frame:
            return found
        f = f.f_back


def answer():
    tasks = []
    threads = {t.native_id: t.ident for t in threading.enumerate()}
    for loop, tid in loops:
        for t in asyncio.all_tasks(loop):
            runs = asyncio.current_task(loop) is t
            waits = t._fut_waiter
            tasks.append({"thread": tid, "name": t.get_name(), "runs": runs, "waits": type(waits).__name__ if waits is not None else None,
                          "frames": executed(t, threads[tid]) if runs else awaited(t.get_coro()), "edges": sorted(EDGES.get(t.get_name(), []))})
    return tasks


def settled(loop, thread):
    # the loop waits for events, or its task waits for the lock
    f = sys._current_frames()[thread.ident]
    return f.f_code.co_name == "select" and not loop._ready or f.f_code.co_name == "blocks" and f.f_lineno == f.f_code.co_firstlineno + 2


for target in run_idle, run_busy:
    t = threading.Thread(target=target, daemon=True)
    t.start()
    ready.acquire()
    while not settled(loops[-1][0], t):
        pass
run_ended()
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(answer()), flush=True)
"""
APP = file_of("app.py", PROGRAM)


def frames_of(text):
    return [[m[0], m[1], int(m[2] or 0)] for m in re.findall(r"^ +([^\s`]+)`(.*?)(?::(\d+))?$", text, re.M)]


def shown(text):
    """The tasks in the output of descry stack --async, in its order."""
    tasks, thread = [], None
    for part in re.split(r"\n(?=  \S|    task )", text):
        head, _, rest = part.partition("\n")
        m = re.match(r"  thread (\d+)", head)
        thread = int(m[1]) if m else 0 if head.startswith("  tasks of loops") else thread
        m = re.match(r"    task (.*?), (runs|ready to run|waits for (.*))$", head)
        if m:
            tasks.append({"thread": thread, "name": m[1], "runs": m[2] == "runs", "for": m[3], "frames": frames_of(rest)})
    return tasks


def unqualified(frames):
    """Before 3.11 a code object has no qualified name."""
    return [[f[0], f[1].rsplit(".", 1)[-1], f[2]] for f in frames]


def compare(name, theirs, ours):
    keys = [(t["thread"], t["name"]) for t in ours]
    check(sorted(keys) == sorted((t["thread"], t["name"]) for t in theirs), name, "the tasks", sorted(set(keys) ^ {(t["thread"], t["name"]) for t in theirs}))
    of = {(t["thread"], t["name"]): t for t in ours}
    for t in theirs:
        got = of.get((t["thread"], t["name"]))
        if not got:
            continue
        check(unqualified(got["frames"]) == unqualified(t["frames"]), name, t["name"], "frames\n theirs %s\n ours   %s" % (t["frames"], got["frames"]))
        check(got["runs"] == t["runs"], name, t["name"], "runs", got["runs"])
        check((got["for"] is None) == (t["waits"] is None or t["runs"]), name, t["name"], "waits", got["for"], t["waits"])
        if got["for"] is None:
            continue
        edges = re.split(r", | and ", got["for"])
        if len(t["edges"]) > 8:
            m = re.search(r" and (\d+) others$", got["for"])
            check(m and int(m[1]) == len(t["edges"]) - 8, name, t["name"], got["for"])
        elif t["edges"]:
            check(sorted(edges) == t["edges"], name, t["name"], "waits for", got["for"], "not", t["edges"])
        else:
            check(got["for"].rsplit(".", 1)[-1] == t["waits"], name, t["name"], "waits for", got["for"], "not", t["waits"])
    # each task stands behind those that it waits for
    order = {t["name"]: i for i, t in enumerate(ours)}
    late = [(t["name"], e) for t in theirs for e in t["edges"] if order.get(e, 0) > order.get(t["name"], 0)]
    check(not late, name, "order", late[:5])
    return sum(len(t["frames"]) for t in theirs)


def from_json(rows):
    rows = [r for r in rows if r["type"] == "task"]
    return [{"thread": r["thread"], "name": r["name"], "runs": r["runs"],
             "for": (" and ".join([rows[i]["name"] for i in r["tasks"][:8]]) or r["waits"]) + (" and %d others" % (len(r["tasks"]) - 8) if len(r["tasks"]) > 8 else "")
             if r["waits"] else None,
             "frames": [[os.path.basename(f["file"]), f["function"], f["line"]] for f in r["frames"]]} for r in rows]


def version(python):
    p = Program(python, APP)
    theirs = p.ask("tasks")
    r = descry("stack", "--async", "-p", p.pid)
    frames = compare(python, theirs, shown(r.out))
    check("ready" in [t["name"] for t in theirs] and any(t["runs"] for t in theirs), python, "a task runs", [t["name"] for t in theirs])
    compare(python + " heap", theirs, from_json([json.loads(line) for line in descry("heap", "--async", "--json", "-p", p.pid).out.splitlines()]))
    check("    task " not in descry("stack", "-p", p.pid).out, python, "without --async there are no tasks")
    if not python.startswith(RUNTIMES):  # a core has the paths of files, which for those have another root
        compare_core(python, p, theirs)
    print("%s: %d tasks, %d frames" % (python, len(theirs), frames))


def compare_core(python, p, theirs):
    subprocess.run(["gcore", "-o", os.path.join(TMP, "core"), p.pid], stdin=subprocess.DEVNULL, capture_output=True)
    core = os.path.join(TMP, "core." + p.pid)
    compare(python + " core", theirs, shown(descry("stack", "--async", core).out))
    os.unlink(core)


def refused():
    p = kill_at_end(subprocess.Popen(["sleep", "1000"]))
    r = descry("stack", "--async", "-p", str(p.pid))
    check("it runs no Python, so there are no tasks" in r.err, "a process without Python", r)


refused()
pythons = os.environ.get("PYTHONS", "").split()
if not pythons:
    found = [os.path.join(RUNTIMES, "python" + v) for v in EXPECTED["python"] if v not in ("2.7", "3.14")]  # live_versions_python shows that 3.14 is refused
    pythons = ["/usr/bin/python3"] + [p for p in found if os.path.exists(p)]
    for p in sorted(set(found) - set(pythons)):
        print("not seen: %s (tools/install-runtimes gets it)" % os.path.basename(p))
for python in pythons:
    version(python)
done()
