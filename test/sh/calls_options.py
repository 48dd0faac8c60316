#!/usr/bin/env python3
# descry calls: what its options add to a line or to the table. calls.py tests the lines themselves.
import json
import pty

from calls_tracee import *

for engine in engines:
    how = ["-X", "engine=" + engine, "-F", "made.conf"]

    # callers: all, or the innermost
    r = calls(*how, "-k", "-e", "strcmp", "./t", "lines", "0", rc=3)
    blocks = re.findall(r"^strcmp\(\"[abc]\", .*\n((?: > .*\n)+)", r.err, re.M)
    names = [re.findall(r"^ > (\S+) \[0x[0-9a-f]+\]$", b, re.M) for b in blocks]
    check(names and all(n[0] == "t`compare" and "t`lines" in n and n[n.index("t`lines") + 1] == "t`main" for n in names), engine, "-k", r)
    r = calls(*how, "-w", "2", "-e", "atoi", "./t", "lines", "0", rc=3)
    check(re.search(r"^atoi\(\"12\"\) += 12\n > t`lines \[0x\w+\]\n > t`main \[0x\w+\]\n\+\+\+", r.err, re.M), engine, "-w", r)

    # only slow calls: as whole lines, at their end
    r = calls(*how, "--min-time", "1000", "-e", "nanosleep+strcpy+qsort", "-x", "compare", "./t", "sleep", "2", rc=0)
    check(re.fullmatch(r"(nanosleep\({ tv_sec=0, tv_nsec=3000000 }, 0\) += 0\n){2}\+\+\+ exited \(status 0\) \+\+\+\n", r.err), engine, "--min-time", r)

    # JSON
    # not all functions: the kernel takes a minute to verify so many stacks when other work runs
    some = "+".join(f + "@MAIN" for f in ("printf", "fopen", "malloc", "strcmp", "exit", "qsort", "made_pair", "made_fill"))
    r = calls(*how, "--json", "-i", "-w", "1", "-e", some, "./t", "lines", "0", rc=3)
    rows = [json.loads(line) for line in r.err.splitlines()]
    by_name = {row["function"]: row for row in rows}
    check(by_name["printf"]["args"] == ['"%s %d %d%c\\n"', '"given"', "12", "1", "'x'"] and by_name["printf"]["result"] == "12", engine, "args", rows)
    check(by_name["fopen"]["errno"] == "ENOENT" and by_name["malloc"]["stack"][0].startswith("t`lines [0x"), engine, "errno, stack", rows)
    check(by_name["strcmp"]["depth"] == 1 and by_name["strcmp"]["stack"][0].startswith("t`compare") and by_name["exit"]["result"] is None,
          engine, "depth, no return", rows)
    check(all(row["tid"] == rows[0]["tid"] and row["time"] > 1e9 and row["address"].startswith("0x") for row in rows), engine, "times", rows)
    check(by_name["made_pair"]["args"][1] in ("1", "2") and by_name["made_fill"]["args"] == [chr(34) + "xxxxxx" + chr(34), "6"], engine, "output arguments", by_name)

    # returns without room for a jump; numbers in vector registers, which the kernel does not show
    r = calls(*how, "./t", "registers", "0")
    want = ["made_split(0) = 0", "made_cut(0) = 0", "made_split(1) = 6", "made_cut(3) = 9"]
    if engine == "inproc":
        want += ["made_mean(-1.250000, 7, 3e+20) = 1.5e+20", "sin(0.500000) = 0.479426", "pow(2.000000, 0.500000) = 1.414214", "sqrtf(2.250000) = 1.500000", "ldexp(0.500000, 3) = 4.000000",
                 "frexp(40.000000, 6) = 0.625000", 'strtod("1e3", nil) = 1000.000000',
                 r'printf("%.2f %d %s %g\n", 1.500000, 3, "x", 2.000000) = 11']
    else:
        want += ["made_mean(?, 7, ?) = ?", "sin(?) = ?", "pow(?, ?) = ?", "sqrtf(?) = ?", "ldexp(?, 3) = ?", "frexp(?, 6) = ?", 'strtod("1e3", nil) = ?',
                 r'printf("%.2f %d %s %g\n", ?, 3, "x", ?) = 11']
    want += [r'printf("%d\n", 7) = 2']
    got = [re.sub(r" +=", " =", line) for line in r.err.splitlines() if not re.match(r"atol|strcmp|fflush|__cxa|\+\+\+", line)]
    check(got == want, engine, "registers", got, want)

    # system calls, in the calls that make them, and alone
    r = calls(*how, "-S", "-e", "fopen+nanosleep", "./t", "lines", "0", rc=3)
    check(re.search(r'^fopen\("/nonexistent", "r" <unfinished ...>\nSYS_openat\(AT_FDCWD, "/nonexistent", O_RDONLY, 0\) += -1 ENOENT \(No such file or directory\)\n'
                    r"<... fopen resumed> \) += 0 ENOENT", r.err, re.M), engine, "-S", r)
    check(re.search(r"^SYS_clock_nanosleep\(CLOCK_REALTIME, 0, { tv_sec=0, tv_nsec=1000 }, 0\) += 0$", r.err, re.M), engine, "a time value", r)
    r = calls(*how, "-S", "-L", "./t", "sys", "0")
    lines = [re.sub(r" +=", " =", line[4:]) for line in r.err.splitlines() if line.startswith("SYS_")]
    if shutil.which("strace"):
        # strace leaves out a mode without O_CREAT
        want = subprocess.run(["strace", "-e", "signal=none", "./t", "sys", "0"], stderr=subprocess.PIPE, text=True).stderr.splitlines()
        want = [re.sub(r"0x[0-9a-f]+", "ADDR", re.sub(r" +=", " =", line)) for line in want]
        want = want[next(i for i, line in enumerate(want) if '"made"' in line):]
        got = [re.sub(r"0x[0-9a-f]+", "ADDR", re.sub(r"O_APPEND, 0\)", "O_APPEND)", line)) for line in lines]
        got = got[next(i for i, line in enumerate(got) if '"made"' in line):]
        want = [line.replace("NULL", "0") for line in want if "exit" not in line]
        check([line for line in got if "exit" not in line and "fstat" not in line] == want, engine, "as strace has them", got, want)
    r = calls(*how, "-c", "-S", "-L", "./t", "sys", "0")
    rows = {line.split()[-1 if "total" in line else 4]: line.split() for line in r.err.splitlines()[2:]}
    check(rows.get("SYS_close", [0] * 4)[3] == "2" and rows.get("SYS_mprotect", [0] * 4)[3] == "1" and "atol" not in rows, engine, "-c -S -L", r)

    # the table: JSON, distributions
    r = calls(*how, "-c", "--json", "--histogram", "-e", "rand_r+atol", "./t", "threads", "3", "1001")
    rows = {row["function"]: row for row in map(json.loads, r.err.splitlines())}
    check(set(rows) == {"rand_r", "atol"} and rows["rand_r"]["calls"] == 3003 and rows["rand_r"]["returned"] == 3003, engine, "-c --json", r)
    row = rows["rand_r"]
    check(sum(n for at, n in row["spread"]) == 3003 and row["p50"] <= row["p99"] <= row["max"] <= row["ns"], engine, "spread", row)
    r = calls(*how, "-c", "--histogram", "-e", "rand_r", "./t", "threads", "2", "500")
    part = r.err.split("rand_r (ns)\n")
    check(len(part) == 2 and "Distribution" in part[1] and sum(int(n) for n in re.findall(r"\|@* +(\d+) *$", part[1], re.M)) == 1000,
          engine, "--histogram", r)

# prototypes from a list of files, and of a directory
os.mkdir("conf.d")
with open("conf.d/one.conf", "w") as f:
    f.write("flags[int](ONE=1, TWO=2, ODD=0/1) made_sum(hex(addr), int);\n")
with open("conf.d/not", "w") as f:
    f.write("nonsense\n")
r = calls("-F", "made.conf:conf.d", "-e", "made_sum+made_pair", "./t", "lines", "0", rc=3)
check(re.search(r"^made_pair\({ 7, -8, 0x\w+ }, 1\) += 1$", r.err, re.M) and re.search(r"^made_sum\(0x\w+, 3\) += TWO\|ODD$", r.err, re.M) and
      re.search(r"^made_sum\(0x\w+, 1\) += ONE$", r.err, re.M), "-F list, directory, flags", r)

# files of the machine and of the user, where ltrace looks for them. A later one counts more, -F most. Each names the result 2 differently.
for name, at in ("FIRST", "xdg1/ltrace/a.conf"), ("SECOND", "xdg2/ltrace/b.conf"), ("OWN", "home/.config/ltrace/c.conf"), ("HOME", "old/.ltrace.conf"), ("GIVEN", "f.conf"):
    os.makedirs(os.path.dirname(at) or ".", exist_ok=True)
    with open(at, "w") as f:
        f.write("enum[int](%s=2) made_sum(addr, int);\n" % name)
one, two = (os.path.join(TMP, d) for d in ("xdg1", "xdg2"))
for want, home, dirs, flags in (("FIRST", "none", one + ":" + two, []), ("SECOND", "none", two + ":" + one, []), ("0x2", "none", "xdg1", []), ("OWN", "home", one, []),
                                ("HOME", "old", one, []), ("GIVEN", "old", one, ["-F", "f.conf"])):
    env = {k: v for k, v in os.environ.items() if k != "XDG_CONFIG_HOME"}
    r = calls(*flags, "-e", "made_sum", "./t", "lines", "0", rc=3, env=dict(env, HOME=os.path.join(TMP, home), XDG_CONFIG_DIRS=dirs))
    check(re.search(r"^made_sum\(.* 0?x?3\b.*\) += %s$" % want, r.err, re.M), "prototypes of", home, dirs, flags, r)
env["XDG_CONFIG_HOME"] = os.path.join(TMP, "xdg2")
r = calls("-e", "made_sum", "./t", "lines", "0", rc=3, env=dict(env, HOME=os.path.join(TMP, "home"), XDG_CONFIG_DIRS=one))
check(re.search(r"^made_sum\(.*, 3\) += SECOND$", r.err, re.M), "XDG_CONFIG_HOME", r)
# A file that nobody has named may be anything, or wrong: descry runs without it.
os.makedirs("odd")
os.mkfifo("odd/.ltrace.conf")
env = dict(os.environ, HOME=os.path.join(TMP, "odd"))
r = calls("-e", "made_sum", "./t", "lines", "0", rc=3, env=env)
check("odd/.ltrace.conf is left out: no regular file" in r.err and "made_sum(" in r.err, "a FIFO", r)
os.unlink("odd/.ltrace.conf")
with open("odd/.ltrace.conf", "w") as f:
    f.write("int made_sum(int;\nenum[int](RIGHT=2) made_sum(addr, int);\n")
r = calls("-e", "made_sum", "./t", "lines", "0", rc=3, env=env)
check("odd/.ltrace.conf:1: " in r.err and re.search(r"^made_sum\(.* 0?x?3\b.*\) += RIGHT$", r.err, re.M), "a wrong line", r)

# without a prototype: by the library's debugging information
os.mkdir("debug")
check(sh("cc -g -O1 -fno-inline -fPIC -shared -o debug/libmade.so made.c").returncode == 0, "built with -g")
r = calls("-e", "made_pair+made_sum+made_nest", "./t", "lines", "0", rc=3, env=dict(os.environ, LD_LIBRARY_PATH=TMP + "/debug"))
check(re.search(r"^made_pair\({ a=7, b=-8, name=0x\w+ }, 1\) += 1$", r.err, re.M) and re.search(r"^made_sum\(1, 3\) += 2$", r.err, re.M) and
      re.search(r"^made_nest\(2\) += 12$", r.err, re.M), "prototypes by DWARF", r)

for count in [], ["-c"]:
    r = calls("-X", "report", *count, "-e", "atoi", "./t", "lines", "0", rc=3)
    check("engine " in r.err and "atoi" in r.err, "-X report", r)
r = calls("-V", rc=0)
check(r.out.startswith("descry calls: descry "), "-V", r)
r = calls("-b", "-e", "atoi", "./t", "lines", "0", rc=3)
check('atoi("12")' in r.err, "-b", r)
# what -D asks for: the report, which 0 does not
r = calls("-D", "77", "-e", "atoi", "./t", "lines", "0", rc=3)
check("engine " in r.err and "engine" not in calls("-D", "0", "-e", "atoi", "./t", "lines", "0", rc=3).err, "-D", r)
# the column of results: 5/8 of the width
for columns, at in ("120", 75), ("0", 50), ("x", 50):
    r = descry("calls", "-e", "atoi", "./t", "lines", "0", rc=3, env=dict(os.environ, COLUMNS=columns))
    check(r.err.startswith('t->atoi("12")' + " " * (at - 14) + "= 12\n"), "COLUMNS", columns, r)
# the end has the time of its line, as all lines have; a second line of a call has its address again
r = calls("-ttt", "-r", "-i", "-F", "made.conf", "-e", "qsort", "-x", "compare", "./t", "lines", "0", rc=3)
check(re.search(r"^\d+\.\d{6} +\d+\.\d{6} \[(0x\w+)\] qsort\((.*\n)+\d+\.\d{6} +\d+\.\d{6} \[\1\] <\.\.\. qsort resumed> \) += <void>\n", r.err, re.M) and
      re.search(r"^\d+\.\d{6} +\d+\.\d{6} \+\+\+ exited \(status 3\) \+\+\+\n\Z", r.err, re.M), "times and addresses of all lines", r)
# a process and a command: the returns of both are seen
t = subprocess.Popen(["./t", "forever", "0"], stdout=subprocess.PIPE, text=True)
traced = None
try:
    t.stdout.readline()
    traced = subprocess.Popen([DESCRY, "calls", "-F", "made.conf", "-e", "usleep+atoi+made_sum", "-p", str(t.pid), "./t", "lines", "0"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    seen, want = set(), {"usleep(2000) = 0", 'atoi("12") = 12'}
    while not seen >= want:
        line = without_objects(traced.stderr.readline())
        check(line, "ends early", seen)
        if not line:
            break
        m = re.match(r"\[pid (\d+)\] (\w+\(.*\)) +(= .*)", line)
        if m:
            seen.add(m[2] + " " + m[3])
            check((int(m[1]) == t.pid) == (m[2] == "usleep(2000)"), "whose call it is", line)
    t.kill()
    rest = traced.communicate(timeout=120)[1]
    check(traced.returncode == 3 and rest.endswith("+++ exited (status 3) +++\n"), "the command's end", traced.returncode, rest[-300:])
finally:
    t.kill()
    t.communicate()
    if traced and traced.poll() is None:
        traced.kill()
        traced.communicate()
# arguments are contents of the program's memory
os.umask(0o022)
r = calls("-o", "private.txt", "./t", "lines", "0", rc=3)
check(os.stat("private.txt").st_mode & 0o777 == 0o600 and os.stat("private.txt").st_size, "-o: the mode of the file", r)
r = calls("-u", "no_such_user", "./t", "lines", "0", rc=1)
check("there is no user no_such_user" in r.err, "-u of nobody known", r)
if os.getuid() == 0:
    os.chmod(TMP, 0o755)
    r = calls("-u", "nobody", "-e", "getuid+atol", "./t", "uid", "0", rc=0)
    check(re.search(r"^getuid\(\) += 65534$", r.err, re.M), "-u", r)
    if shutil.which("id"):
        own = subprocess.run(["id", "nobody"], stdout=subprocess.PIPE, text=True).stdout
        # another user's program has no terminal into which it could type
        r = calls("-u", "nobody", "sh", "-c", "cut -d' ' -f1,6 /proc/self/stat; echo $$", rc=0)
        reader, session, shell = r.out.split()
        check(session == shell and session != str(os.getsid(0)), "-u: a session of its own", r)
        # of root's environment, it has nothing but the terminal and the language
        r = calls("-u", "nobody", "-e", "exit", "env", rc=0, env={**os.environ, "SECRET": "root's", "LC_DESCRY": "x", "PATH": os.environ["PATH"] + ":/root"})
        told = dict(line.split("=", 1) for line in r.out.splitlines())
        check({"HOME", "SHELL", "LC_DESCRY"} <= set(told) <= {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "LANG", *(v for v in os.environ if v.startswith("LC_")), "LC_DESCRY"}, "-u: the environment", r)
        check(told["USER"] == told["LOGNAME"] == "nobody" and told["PATH"] == "/usr/local/bin:/usr/bin:/bin", "-u: the user's variables", r)
        r = calls("-u", "nobody", "/root/none", rc=1)
        check("cannot run /root/none as user nobody" in r.err, "-u: a command that cannot be run", r)
        r = calls("-u", "nobody", "-e", "exit", "id", rc=0)
        check(r.out == own and "groups=" in own, "-u: user, group and groups", r, own)
    # The file of a program names its dynamic linker, which descry's user must not run for another's program. This one jumps to the program.
    with open("linker.c", "w") as f:
        f.write("""__asm__(".globl _start\\n_start: mov %rsp, %rbx\\n mov %rsp, %rdi\\n call begin\\n mov %rbx, %rsp\\n jmp *%rax\\n");
static long call(long n, long a, long b, long c) { long r; __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory"); return r; }
long begin(long *sp)
{
    long *v = sp + 2 + sp[0];
    if (sp[0] > 1 && ((char *)sp[2])[0] == '-')
        call(231, call(2, (long)"PATH/linker.ran", 0101, 0600) < 0, 0, 0);
    while (*v++);
    while (*v != 9) v += 2; /* AT_ENTRY */
    return v[1];
}
""".replace("PATH", os.getcwd()))
    with open("made.c", "w") as f:
        f.write("""__asm__(".globl _start\\n_start: mov $60, %eax\\n mov $5, %edi\\n syscall\\n"); int puts(const char *); void never(void) { puts("x"); }""")
    subprocess.run(["cc", "-O1", "-fno-stack-protector", "-nostdlib", "-static-pie", "-o", "ld-made", "linker.c"], check=True)
    subprocess.run(["cc", "-O1", "-nostartfiles", "-pie", "-o", "made", "-Wl,--dynamic-linker=" + os.getcwd() + "/ld-made", "made.c"], check=True)
    check(subprocess.run(["./ld-made", "--list"]).returncode == 0 and os.path.exists("linker.ran"), "the made linker runs")
    os.unlink("linker.ran")
    r = finish(start("calls", "-u", "nobody", "./made"))
    check(r.rc == 5 and not os.path.exists("linker.ran"), "descry runs the linker that another user's program names", r)
else:
    print("note: -u wants root")

# On a terminal: functions are bold, and a line with the calls of the last second stands under -c.
def on_terminal(until, *args):
    """What descry calls writes to a terminal. until: text after which the program is told to end."""
    ours, its = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    p = subprocess.Popen([DESCRY, "calls", *args], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=its, env={**env, "TERM": "xterm"})
    os.close(its)
    text = ""
    while True:
        try:
            text += os.read(ours, 65536).decode(errors="replace")
        except OSError:  # the terminal is closed
            break
        if until in text:
            p.stdin.close()
            until = "\0"
    p.wait()
    os.close(ours)
    return text


text = on_terminal("qsort", "-e", "qsort+atoi", "./t", "lines", "0")
check("\033[1mqsort\033[0m(" in text and "\033[1matoi" in text, "bold names", text)
with open("often.c", "w") as f:
    f.write("""#include <poll.h>
#include <stdlib.h>
int main(void)
{
    struct pollfd in = { 0, POLLIN };
    while (!poll(&in, 1, 0))
        for (int i = 0; i < 1000; i++)
            rand();
    return 0;
}
""")
subprocess.run(["cc", "-O0", "-fno-builtin", "-o", "often", "often.c"], check=True)
text = on_terminal(" a second", "-c", "-e", "rand", "./often")
check(re.search(r"\r\d+ calls, \d+ a second\033\[K", text) and re.search(r"\r\033\[K[^\r]*calls", text), "the line of -c", text)
done()
