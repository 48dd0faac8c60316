#!/usr/bin/env python3
# descry calls changes nothing and misses nothing: each of N calls of M threads is counted, also with signal handlers that make the same
# calls; output, exit status and signals of the program are its own; ^C and kill -9 leave a program that runs on, with its own text.
import json

from calls_tracee import *


for engine in engines:
    how = ["-X", "engine=" + engine, "-F", "made.conf"]
    for threads, n in (1, 1), (3, 20011), (16, 5003):
        r = calls(*how, "-c", "--json", "--time-all", "-e", "rand_r", "./t", "threads", str(threads), str(n))
        row = json.loads(r.err)
        check((row["calls"], row["returned"], row["timed"]) == (threads * n,) * 3, engine, "%d threads" % threads, r)

    # of many calls that are short, not all are timed, but all counted. The timed ones stand for all, but for the last few of a thread.
    threads, n = (3, 300007) if engine == "inproc" else (2, 3001)
    r = calls(*how, "-c", "--json", "-e", "rand_r", "./t", "threads", str(threads), str(n))
    row = json.loads(r.err)
    check(row["calls"] == threads * n and threads * (n - 64) <= row["returned"] <= threads * n, engine, "calls of which some are timed", r)
    check(row["timed"] < row["calls"] / 2 if engine == "inproc" else row["timed"] <= row["calls"], engine, "some are timed", r)
    r = calls(*how, "-c", "-e", "rand_r", "./t", "threads", str(threads), str(n))
    check(("estimates" in r.err) == (engine == "inproc"), engine, "what is estimated is said", r)

    # a handler that makes the same call in the middle of it: both are counted
    alone = subprocess.run(["./t", "signals", "200"], stdout=subprocess.PIPE, text=True)
    r = calls(*how, "-c", "--json", "-x", "made_nest", "./t", "signals", "200")
    made, handled = map(int, r.out.split())
    plain_handled = int(alone.stdout.split()[1])
    rows = {row["function"]: row for row in map(json.loads, r.err.splitlines())}
    check(handled == plain_handled == 200 and rows["made_nest"]["calls"] == made, engine, "signals", r, alone)

    # a program that ends by itself, by a signal, and one whose status is its own
    for argv, rc in (["lines", "0"], 3), (["kill", "0"], 128 + 9), (["uid", "0"], 0):
        own = subprocess.run(["./t", *argv], stdout=subprocess.PIPE, text=True)
        r = calls(*how, "-c", "./t", *argv, rc=rc)
        check(r.out == own.stdout and rc == (128 - own.returncode if own.returncode < 0 else own.returncode), engine, "output and status of", argv, r)

    for end in signal.SIGINT, signal.SIGKILL:
        t = subprocess.Popen(["./t", "forever", "0"], stdout=subprocess.PIPE, text=True)
        out = open("traced.err", "w+")
        try:
            t.stdout.readline()
            traced = subprocess.Popen([DESCRY, "calls", *how, "-e", "usleep", "-o", "traced.out", "-p", str(t.pid)], stderr=out)
            while traced.poll() is None and (not os.path.exists("traced.out") or os.path.getsize("traced.out") == 0):
                t.stdout.readline()
            traced.send_signal(end)
            traced.wait()
            os.unlink("traced.out")
            # the watchdog of a killed tracer restores the text
            last = int(t.stdout.readline())
            went_on = 0
            while went_on < 100 or not text_is_its_own(t.pid):
                went_on = int(t.stdout.readline()) - last
            check(t.poll() is None, engine, "lives after", end)
        finally:
            t.kill()
            t.communicate()
            out.close()

    # a command that descry has started goes on after ^C, too, and gets no signal; descry has its table and waits for its status. SIGTERM ends descry.
    for end in signal.SIGINT, signal.SIGTERM:
        traced = subprocess.Popen([DESCRY, "calls", *how, "-c", "-e", "usleep", "-o", "traced.out", "./t", "forever", "0"], stdout=subprocess.PIPE, text=True)
        pid = 0
        try:
            for i in range(20):
                traced.stdout.readline()
            children = open("/proc/%d/task/%d/children" % (traced.pid, traced.pid)).read().split()
            pid = int([child for child in children if os.readlink("/proc/%s/exe" % child).endswith("/t")][0])
            traced.send_signal(end)
            if end == signal.SIGTERM:
                check(traced.wait() == 0, engine, "ends by SIGTERM", traced.returncode)
            last = int(traced.stdout.readline())
            while int(traced.stdout.readline()) < last + 100 or not text_is_its_own(pid):
                pass
            check(" usleep " in open("traced.out").read(), engine, "the table of", end)
            os.kill(pid, signal.SIGUSR1)
            check(traced.wait() == (0 if end == signal.SIGTERM else 128 + signal.SIGUSR1), engine, "the command's status after", end, traced.returncode)
        finally:
            if pid and traced.poll() is None:
                os.kill(pid, signal.SIGKILL)
            traced.communicate()
done()
