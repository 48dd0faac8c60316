#!/usr/bin/env python3
# The tutorial of doc/usdt.md as a user would do it: provider.d, -h, compile, -G, link, trace by name, with both engines and both names
# of the program; then DOF, which other DTraces' -G leaves in a file.
# serial
# covers: -h -G
from live import *

text = open("doc/usdt.md").read()
files = dict(re.findall(r"(?m)^`([\w.]+)`:\n\n((?:    .*\n|\n)+)", text))
check(sorted(files) == ["main.c", "myserv.d", "query.c"], "files of the page", sorted(files))
for name, body in files.items():
    with open(os.path.join(TMP, name), "w") as f:
        f.write(re.sub(r"(?m)^    ", "", body))
os.symlink(os.path.abspath(DESCRY), os.path.join(TMP, "descry"))
os.symlink(os.path.abspath(DESCRY), os.path.join(TMP, "dtrace"))
steps = re.findall(r"(?m)^    \$ (.*)$", text)
env = dict(os.environ, PATH=TMP + ":" + os.environ["PATH"])


def step(cmd, rc=0):
    r = subprocess.run(cmd, shell=True, cwd=TMP, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    out = r.stdout.decode(errors="replace")
    if "not permitted" in out or "CAP_BPF" in out:
        skip("bpf(2) is not permitted")
    check(r.returncode == rc, "%s: exit %d\n%s" % (cmd, r.returncode, out))
    return out


build = [s for s in steps if " -n " not in s]
check(len(build) == 4, "steps that build", build)
for name in "descry", "dtrace":
    for s in build:
        step(re.sub("^descry ", name + " ", s))
traces = [s for s in steps if " -n " in s]
check(len(traces) == 3, "steps that trace", traces)
for s in traces:
    for engine in "kernel", "inproc", "auto":
        out = step(s.replace("-n ", "-x engine=%s -n " % engine, 1))
        page = text.split("$ " + s + "\n")[1].split("\n\n")[0]
        want = [line.split() for line in page.splitlines() if line.strip()]
        got = [line.split() for line in out.splitlines() if line.strip()]
        check([w for w in want if w not in got] == [], "the page's output with engine=%s: %s\n%s" % (engine, s, out))
# -p, a pattern of providers, a C++ program, objects named on the command line
with open(os.path.join(TMP, "plus.cc"), "w") as f:
    f.write('#include "myserv.h"\nint main() { for (int i = 0; i < 4; i++) { if (MYSERV_QUERY_RECEIVE_ENABLED()) MYSERV_QUERY_RECEIVE("q", "w"); MYSERV_QUERY_RESPOND(i); } }\n')
step("g++ -c plus.cc && descry -G -s myserv.d plus.o && g++ -o plus plus.o myserv.o")
for engine in "kernel", "inproc":
    out = step("descry -x engine=%s -qn 'my*$target:::query-receive { @r = count(); } myserv*:::query-respond { @s = sum(arg0); } END { printa(\"%%@d \", @r); printa(\"%%@d\", @s); }' -c ./plus" % engine)
    check("4 6" in out, "C++ with engine=" + engine, out)
# untraced: guarded code does not run
check("quiet" in step("./myserv quiet"), "untraced")
# the provider of one process is not another's
out = step("descry -l -P 'nosuch*' ", 1)
check("does not match" in out, "no such provider", out)

DOF = os.path.join(BUILD, "test", "tracee_dof")
lists = step("descry -l -v -n 'shop$target:::' -c '%s 2'" % DOF)
check(lists.count(" sell sale") == 2 and "closed-shop" in lists and "char *" in lists, "DOF listed", lists)
for engine in "kernel", "inproc":
    out = step("descry -x engine=%s -qn 'shop$target:::sale { @[copyinstr(arg0)] = sum(arg1); } shop*:::sale { @n[stringof(copyinstr((uintptr_t)args[0])), args[1]] = count(); } shop$target:::closed-shop { printf(\"closed in %%s\\n\", probefunc); }' -c '%s 3'" % (engine, DOF))
    got = {tuple(line.split()) for line in out.splitlines()}
    # each sale is seen twice, the second time with one more
    check({("closed", "in", "close_shop"), ("bread", "21"), ("milk", "42"), ("bread", "10", "1"), ("milk", "21", "1")} <= got, "DOF with engine=" + engine, out)

# A program that asks first: the answer is yes as long as a tracer is attached, from inside.
ASKS = os.path.join(BUILD, "test", "tracee_dof_asks")
d = "desk$target:::hello, desk$target:::bye { @[probename] = sum(arg0); } desk$target:::idle { @[probename] = sum(1); }"
check("told yes: hello 0 bye 0 idle 0" in step(ASKS + " 3"), "nobody looks")
out = step("descry -x engine=inproc -qn '%s' -c '%s 3'" % (d, ASKS))
check("told yes: hello 3 bye 3 idle 3" in out, "told yes", out)
check({("hello", "30"), ("bye", "300"), ("idle", "3")} <= {tuple(line.split()) for line in out.splitlines()}, "behind the questions", out)
out = step("descry -x engine=inproc -qn 'desk$target::bye: { @ = count(); }' -c '%s 3'" % ASKS)
check("told yes: hello 0 bye 3 idle 0" in out, "one of them", out)
out = step("descry -x engine=kernel -n '%s' -c '%s 3'" % (d, ASKS))
check("told yes: hello 0 bye 0 idle 0" in out and "cannot answer yes" in out, "the kernel engine says so", out)
check("only the in-process engine answers yes" in step("descry -l -v -n 'desk$target:::' -c " + ASKS), "-l -v says so")
t = subprocess.Popen([ASKS, "5", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def rounds():
    t.stdin.write(b"\n")
    t.stdin.flush()
    return t.stdout.readline().decode()


check("hello 0 bye 0 idle 0" in t.stdout.readline().decode(), "before")
p = subprocess.Popen([DESCRY, "-x", "engine=inproc", "-x", "switchrate=100hz", "-qn", "desk$target:::hello, desk$target:::bye, desk$target:::idle { @ = count(); } tick-50ms /!said++/ { printf(\"on\\n\"); }", "-p", str(t.pid)], stdout=subprocess.PIPE)
check(p.stdout.readline() == b"on\n", "it traces")
check(rounds() == "told yes: hello 5 bye 5 idle 5\n", "while it is traced")
p.send_signal(signal.SIGINT)
check(p.wait(60) == 0 and "15" in p.stdout.read().decode().split(), "what was seen")
check(rounds() == "told yes: hello 0 bye 0 idle 0\n" and t.wait(60) == 0, "taken back")
done()
