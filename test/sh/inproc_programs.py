#!/usr/bin/env python3
# Real programs, with all functions of their own or of a library probed, entry and return, from their start or in the
# middle. Their output and exit code are unchanged, and probes fire. DESCRY_PROGRAMS=all: more of them.
# serial
from live import *

ALL = os.environ.get("DESCRY_PROGRAMS") == "all"
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
os.chdir(TMP)
ENV = dict(os.environ, PYTHONHASHSEED="0", LC_ALL="C", HOME=TMP)


def write(name, text):
    with open(os.path.join(TMP, name), "w") as f:
        f.write(text)
    return os.path.join(TMP, name)


PYTHON = write("work.py", """
import json, re, sys, threading, zlib, subprocess, random
def work(n):
    random.seed(7)
    t = [json.dumps({"k%d" % i: [i, str(i) * 3, None, i / 7]}) for i in range(n)]
    u = [json.loads(s) for s in t]
    bad = 0
    for s in t:
        try:
            json.loads(s[:-1])
        except ValueError:
            bad += 1
    z = zlib.crc32(zlib.decompress(zlib.compress("".join(t).encode())))
    return len(u), bad, z, len(re.findall("[0-9]+", "".join(t))), sorted(t, key=len)[-1]
for i in range(int(sys.argv[1])):
    out = []
    th = [threading.Thread(target=lambda k=k: out.append(work(100 + k))) for k in range(4)]
    [x.start() for x in th]; [x.join() for x in th]
    print(i, sorted(out), subprocess.check_output(["echo", "child"]) if i % 4 == 0 else "")
sys.exit(3)
""")
PERL = write("work.pl", """
for my $r (1 .. $ARGV[0]) {
    my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1 .. 4000;
    my $s = join ",", map { "$_=" . length($h{$_}) } sort { $a <=> $b } keys %h;
    $s =~ s/(\\d)(\\d)/$2$1/g; eval { die "at $r\\n" }; print "$r $@", unpack("%32C*", $s), "\\n";
    local $SIG{ALRM} = sub { print "alarm\\n" }; kill ALRM => $$;
    unless ($r % 5) { my $p = fork; exit 7 unless $p; waitpid $p, 0; print $? >> 8, "\\n" }
}
exit 4;
""")
RUBY = write("work.rb", """
ARGV[0].to_i.times do |r|
  a = (0...3000).map { |i| (i * 7919) % 10007 }.sort; h = Hash.new(0); a.each { |x| h[x % 31] += 1 }
  begin; raise "round #{r}"; rescue => e; puts e.message; end
  puts a.inject(0) { |s, x| (s * 31 + x) & 0xffffffff }, h.size, "abc".gsub(/b/, "zz"), catch(:d) { 9.times { |i| throw :d, i if i == 7 } }
  p 4.times.map { |i| Thread.new { (1..500).inject(:+) * i } }.map(&:value)
  f = Fiber.new { Fiber.yield 1; 2 }; p f.resume, f.resume; GC.start if r % 4 == 0
end
$stdout.flush; exit 5
""")
NODE = write("work.js", """
const { createHash } = require('crypto'), fs = require('fs');
function round(r) {
  const a = []; for (let i = 0; i < 30000; i++) a.push((i * 7919) % 10007); a.sort((x, y) => x - y);
  let s = 0; for (const x of a) s = (s * 31 + x) >>> 0;
  try { null.x } catch (e) { s++ }
  console.log(r, s, createHash('sha256').update(JSON.stringify(a)).digest('hex'), JSON.parse(JSON.stringify(a)).length);
  return Promise.all([1, 2, 3].map(() => fs.promises.readFile(process.argv[1]))).then(b => console.log(b.map(x => x.length).join()));
}
(async () => { for (let r = 0; r < +process.argv[2]; r++) await round(r); process.exitCode = 6; })();
""")
JAVA = write("Work.java", """
import java.util.*;
public class Work {
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) throws Exception {
    for (int r = 0; r < Integer.parseInt(a[0]); r++) {
      long s = 0; Map<Integer, String> m = new HashMap<>();
      for (int i = 0; i < 50000; i++) m.put(i % 5000, "" + i);
      for (String v : m.values()) s = s * 31 + v.hashCode();
      Thread[] t = new Thread[6]; final long[] o = new long[6];
      for (int i = 0; i < 6; i++) { final int k = i; t[i] = new Thread(() -> { o[k] = fib(16 + k % 3);
        for (int q = 0; q < 300; q++) try { Object x = q % 2 == 0 ? null : "a"; o[k] += x.hashCode(); } catch (NullPointerException e) { o[k]++; } }); t[i].start(); }
      for (Thread x : t) x.join(); for (long x : o) s += x; if (r % 3 == 0) System.gc(); System.out.println(r + " " + s);
    }
    System.exit(7);
  }
}
""")
CPP = write("work.cc", r"""
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct Count { int &n; Count(int &n) : n(n) { n++; } ~Count() { n--; } };
static int alive;
__attribute__((noinline)) int deep(int n) { Count c(alive); if (n == 0) throw std::runtime_error("deep"); return deep(n - 1) + 1; }
__attribute__((noinline)) int middle(int n) { try { return deep(n); } catch (const std::logic_error &) { return -1; } }
static thread_local jmp_buf back;
__attribute__((noinline)) void jump(int n) { if (n == 0) longjmp(back, 5); jump(n - 1); asm volatile(""); }
__attribute__((noinline)) long other(int n, double d, std::function<long(long)> f) { volatile char room[200]; room[n % 200] = 1; return f(n) + (long)d + room[n % 200]; }
int main(int, char **v) {
  for (int r = 0; r < atoi(v[1]); r++) {
    int caught = 0; long s = 0;
    for (int i = 0; i < 300; i++) { try { middle(i % 20); } catch (const std::exception &e) { caught += e.what()[0]; } if (!setjmp(back)) jump(i % 9); else s++; }
    std::map<std::string, long> m; for (int i = 0; i < 2000; i++) m[std::to_string(i % 77)] += other(i, i * 0.5, [&](long x) { return x * s; });
    std::vector<std::thread> t; std::vector<long> o(4);
    for (int k = 0; k < 4; k++) t.emplace_back([&, k] { for (int i = 0; i < 200; i++) try { if (i % 3) throw i; o[k] += other(i, 1, [](long x) { return x; }); } catch (int x) { o[k] -= x; } });
    for (auto &x : t) x.join();
    for (auto &x : m) s = s * 31 + x.second; printf("%d %d %ld %d %ld\n", r, caught, s, alive, o[0] + o[1] + o[2] + o[3]);
  }
  return 8;
}
""")
RUST = write("work.rs", """
use std::collections::HashMap; use std::thread; use std::panic;
#[inline(never)] fn fib(n: u64) -> u64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
fn main() {
  panic::set_hook(Box::new(|_| {}));
  let rounds: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
  for r in 0..rounds {
    let t: Vec<_> = (0..4).map(|k| thread::spawn(move || { let mut m: HashMap<String, u64> = HashMap::new(); for i in 0..2000u64 { *m.entry(format!("{}", i % 71)).or_insert(0) += i * k; } let mut v: Vec<_> = m.into_iter().collect(); v.sort(); v.iter().fold(0u64, |s, x| s.wrapping_mul(31).wrapping_add(x.1)) + fib(15) })).collect();
    let s: u64 = t.into_iter().map(|x| x.join().unwrap()).fold(0, |a, b| a.wrapping_add(b));
    let bad = (0..50).filter(|i| panic::catch_unwind(|| { if i % 2 == 0 { panic!("x") } }).is_err()).count();
    println!("{} {} {}", r, s, bad);
  }
  std::process::exit(9);
}
""")
CFILE = write("unit.c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + "".join(
    "static int f%d(int x, const char *s) { switch (x %% 9) { case 0: return x; case 1: return f%d(x + 1, s); case 5: return (int)strlen(s); case 7: return x * 3; } "
    "for (int i = 0; i < x; i++) x ^= i << (x & 3); return x; }\n" % (i, i - 1 if i else 0) for i in range(60)) +
    "int main(void) { int s = 0; for (int i = 0; i < 60; i++) s += f59(i, \"abc\") + f3(i, \"\"); printf(\"%d\\n\", s); return 0; }\n")
SQL = ("create table t(a integer primary key,b,c); create index i on t(c); with recursive n(x) as (select 1 union all select x+1 from n where x<%d) "
       "insert into t select x, x*x, 'text '||(x%%97) from n; select c,count(*),sum(b) from t group by c order by 2,1 limit 5; "
       "delete from t where a%%3=0; select count(*),sum(a) from t where c like '%%1%%'; pragma integrity_check;")
GDB = write("work.gdb", "p 1+1\np $_siginfo\ninfo line main\nptype struct mail\np (char)65\nlist main\ndisassemble main\n")

COUNT = "count", "pid$target:%s:%s:entry { @ = count(); } pid$target:%s:%s:return { @r = count(); }"
TIME = "time", "pid$target:%s:%s:entry { self->ts = timestamp; @ = count(); } pid$target:%s:%s:return /self->ts/ { @t[probefunc] = quantize(timestamp - self->ts); self->ts = 0; }"
TEXT = "text", "pid$target:%s:%s:entry { @ = count(); @s = max(strlen(copyinstr(arg0))); } pid$target:%s:%s:return { @t = max(strlen(copyinstr(arg1))); }"
STACK = "stack", "pid$target:%s:%s:entry { @ = count(); @s[ustack(12)] = count(); } pid$target:%s:%s:return { @r = count(); }"


def have(*names):
    return all(shutil.which(n) for n in names)


def end(argv, timeout=120):
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, timeout=timeout)
    return p.returncode, p.stdout, p.stderr


def count_of(path):
    n = [int(x) for x in re.findall(r"^ +(\d+)$", open(path).read(), re.M)] if os.path.exists(path) else []
    return max(n, default=0)


def options(kind, mod, func, out):
    return ["-q", "-x", "engine=inproc", "-x", "aggsize=8m", "-o", out, "-n", kind[1] % (mod, func, mod, func) + " ERROR { }"]


done_cases = []


def by_command(name, argv, kind, mod, func="", least=100):
    """Traces it from its start. descry's exit code is not the command's, so a shell prints the command's."""
    out = os.path.join(TMP, "out")
    if os.path.exists(out):
        os.unlink(out)
    want = end(argv)
    begun = time.monotonic()
    p = subprocess.run([DESCRY] + options(kind, mod, func, out) + ["-c", shlex.join(argv)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, env=ENV, timeout=200)
    n = count_of(out)
    done_cases.append((name, kind[0], mod, n, time.monotonic() - begun))
    check(p.returncode == 0 and p.stdout == want[1], "%s, %s of %s, from its start: other output" % (name, kind[0], mod), p.returncode,
          want[1][-400:], p.stdout[-400:], p.stderr[-800:])
    check(n >= least, "%s, %s of %s: %d firings" % (name, kind[0], mod, n), p.stderr[-800:])


def by_pid(name, argv, kind, mod, func="", least=1, times=2, pause=0.15):
    """Attaches in the middle, and detaches. On a slow machine the program may end too early; then it runs longer."""
    for more in 1, 4, 16:
        run = [str(int(a) * more) if a.isdigit() else a for a in argv]
        if once_by_pid(name, run, kind, mod, func, least, times, pause, more == 16):
            return


def once_by_pid(name, argv, kind, mod, func, least, times, pause, final):
    want = end(argv)
    begun = time.monotonic()
    t = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
    got = {}
    reader = threading.Thread(target=lambda: got.update(zip(("out", "err"), t.communicate())))
    reader.start()
    n = 0
    last = None
    for i in range(times):
        time.sleep(pause)
        out = os.path.join(TMP, "out%d" % i)
        if os.path.exists(out):
            os.unlink(out)
        if t.poll() is not None:
            break
        last = subprocess.run([DESCRY] + options(kind, mod, func, out) + ["-n", "tick-150ms { exit(0); }", "-p", str(t.pid)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, timeout=200)
        n = max(n, count_of(out))
        try:
            left = open("/proc/%d/maps" % t.pid).read()
        except OSError:
            break
        check(last.returncode or "/memfd:descry" not in left, "%s: mappings are left" % name)
    early = t.poll() is not None
    reader.join(300)
    done_cases.append((name + " -p", kind[0], mod, n, time.monotonic() - begun))
    check((t.returncode, got["out"]) == want[:2], "%s, %s of %s, in the middle: other output" % (name, kind[0], mod), want[0], t.returncode,
          want[1][-400:], got["out"][-400:], got["err"][-800:], last and last.stderr[-800:])
    if early and not final and n < least:
        return False
    check(n >= least, "%s, %s of %s, in the middle: %d firings" % (name, kind[0], mod, n), last and last.stderr[-800:])
    return True


import threading

python = "/usr/bin/python3"
if os.path.exists(python):
    by_command("python", [python, PYTHON, "3"], COUNT, "a.out")
    by_command("python", [python, PYTHON, "1"], TEXT, "libc.so.6")
    by_pid("python", [python, PYTHON, "60"], TIME, "a.out")
    if ALL:
        by_command("python", [python, PYTHON, "3"], TIME, "a.out")
        by_command("python", [python, PYTHON, "1"], STACK, "a.out", "_Py*")
        by_command("python", [python, PYTHON, "2"], COUNT, "")
        by_pid("python", [python, PYTHON, "100"], TEXT, "a.out", "Py*", times=4)
        by_pid("python", [python, PYTHON, "100"], STACK, "libc.so.6", "m*", times=4)
if have("perl"):
    by_command("perl", ["/usr/bin/perl", PERL, "10"], TIME, "a.out")
    if ALL:
        by_command("perl", ["/usr/bin/perl", PERL, "10"], TEXT, "")
        by_pid("perl", ["/usr/bin/perl", PERL, "600"], STACK, "a.out", times=4)
ruby = shutil.which("ruby")
if ruby:
    by_command("ruby", [ruby, RUBY, "2"], COUNT, "libruby*")
    by_pid("ruby", [ruby, RUBY, "150"], TIME, "libruby*")
    if ALL:
        by_command("ruby", [ruby, RUBY, "2"], TIME, "libc.so.6")
        by_command("ruby", [ruby, RUBY, "2"], TEXT, "libruby*")
        by_command("ruby", [ruby, RUBY, "1"], STACK, "libruby*", "rb_*")
        by_pid("ruby", [ruby, RUBY, "300"], TEXT, "", "*a*", times=4)
node = shutil.which("node")
if node:
    by_command("node", [node, NODE, "3"], COUNT, "libc.so.6")
    if ALL:
        by_command("node", [node, NODE, "3"], TIME, "a.out", "*uv_*")
        by_command("node", [node, NODE, "3"], COUNT, "a.out", "*v8*internal*")
        by_command("node", [node, NODE, "3"], TEXT, "libc.so.6")
        by_command("node", [node, NODE, "3"], STACK, "libstdc++*")
        by_pid("node", [node, NODE, "80"], TIME, "libc.so.6", times=4)
        by_pid("node", [node, NODE, "200"], COUNT, "a.out", "*v8*Heap*", times=3)
if have("java", "javac") and end(["javac", "-d", TMP, JAVA])[0] == 0:
    java = [shutil.which("java"), "-cp", TMP, "Work"]
    by_command("java", java + ["4"], TIME, "libc.so.6")
    if ALL:
        by_command("java", java + ["4"], TEXT, "libc.so.6")
        by_pid("java", java + ["300"], TIME, "libjvm.so", "*G1*", times=3, pause=0.5)
        by_pid("java", java + ["300"], STACK, "libc.so.6", times=3, pause=0.5)
        by_pid("java", java + ["600"], COUNT, "libjvm.so", times=2, pause=0.5)
if have("sqlite3"):
    by_command("sqlite", [shutil.which("sqlite3"), ":memory:", SQL % 3000], TIME, "libsqlite3*")
    by_pid("sqlite", [shutil.which("sqlite3"), ":memory:", SQL % 300000], COUNT, "libsqlite3*")
    if ALL:
        by_command("sqlite", [shutil.which("sqlite3"), ":memory:", SQL % 3000], TEXT, "")
        by_pid("sqlite", [shutil.which("sqlite3"), ":memory:", SQL % 300000], STACK, "libsqlite3*", "sqlite3*", times=3)
if have("git"):
    end(["git", "init", "-q", TMP + "/repo"])
    for i in range(20):
        write("repo/f%d" % (i % 7), "line %d\n" % i * (i + 5))
        end(["git", "-C", TMP + "/repo", "add", "."])
        end(["git", "-C", TMP + "/repo", "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", "round %d" % i])
    by_command("git", ["git", "-C", TMP + "/repo", "log", "-p", "--stat"], TIME, "libc.so.6")
    if ALL:
        by_command("git", ["git", "-C", TMP + "/repo", "log", "-p", "--stat"], TEXT, "libz*")
        by_command("git", ["git", "-C", TMP + "/repo", "blame", "f3"], STACK, "libc.so.6", "m*")
        by_command("git", ["git", "-C", TMP + "/repo", "fsck"], COUNT, "")
if have("gcc"):
    cc1 = end(["gcc", "-print-prog-name=cc1"])[1].decode().strip()
    unit = [cc1, "-quiet", "-O2", "-imultiarch", end(["gcc", "-print-multiarch"])[1].decode().strip(), CFILE, "-o", "-"]
    by_command("cc1", unit, COUNT, "a.out", "*a*")
    if ALL:
        by_pid("cc1", unit, COUNT, "libc.so.6", times=1, pause=0.05, least=0)
        by_command("cc1", unit, COUNT, "a.out")
        by_command("cc1", unit, TIME, "libc.so.6")
        by_command("cc1", unit, STACK, "libc.so.6", "m*")
if have("clang"):
    clang = [os.path.realpath(shutil.which("clang")), "-cc1", "-emit-obj", "-O2", "-w", "-internal-isystem", "/usr/include", "-internal-externc-isystem",
             "/usr/include/x86_64-linux-gnu", "-internal-isystem", end(["clang", "-print-resource-dir"])[1].decode().strip() + "/include", "-S", "-o", "-", CFILE]
    if ALL:
        by_command("clang", clang, COUNT, "a.out", least=0)
        by_command("clang", clang, TIME, "libLLVM*", "*a*")
        by_command("clang", clang, COUNT, "libLLVM*")
        by_command("clang", clang, TEXT, "libclang-cpp*", "*Sema*")
if have("gdb"):
    gdb = ["gdb", "-nx", "-batch", "-x", GDB, os.path.join(BUILD, "test", "tracee_inside")]
    by_command("gdb", gdb, COUNT, "libc.so.6")
    if ALL:
        by_command("gdb", gdb, COUNT, "a.out")
        by_command("gdb", gdb, TEXT, "libc.so.6")
if have("g++") and end(["g++", "-O2", "-g", "-pthread", "-o", "work_cc", CPP])[0] == 0:
    cpp = [os.path.join(TMP, "work_cc")]
    by_command("c++", cpp + ["3"], TIME, "a.out")
    by_pid("c++", cpp + ["150"], COUNT, "a.out")
    if ALL:
        for kind in COUNT, TIME, TEXT, STACK:
            for mod in "a.out", "libstdc++*", "libgcc_s*", "":
                by_command("c++", cpp + ["2"], kind, mod)
        for mod in "libstdc++*", "libgcc_s*", "libc.so.6":
            by_pid("c++", cpp + ["300"], TIME, mod, times=4)
if ALL and have("rustc") and end(["rustc", "-O", "-o", "work_rs", RUST])[0] == 0:
    rust = [os.path.join(TMP, "work_rs")]
    for kind in COUNT, TIME, TEXT, STACK:
        by_command("rust", rust + ["2"], kind, "a.out")
    by_pid("rust", rust + ["100"], TIME, "a.out", times=4)
if ALL or failed():
    for c in done_cases:
        print("%-10s %-6s %-14s %10d firings %6.1f s" % c)
done()
