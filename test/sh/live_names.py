#!/usr/bin/env python3
# Names of user frames: inlined functions and source lines (-x srcline), symbols of stripped files by debuglink and from a
# debuginfod server, C++ and Rust names, a file replaced while it runs, code that a process makes and is gone when it is printed.
# serial
from live import *
from inlined import C
import http.server
import threading

src, exe = TMP + "/names.c", TMP + "/names"
open(src, "w").write(C)
subprocess.run(["cc", "-O2", "-g", "-Wl,--build-id=sha1", "-fno-optimize-sibling-calls", "-o", exe, src], check=True)


def stacks(program, *options, env=None):
    """The stacks of a program, sampled: a list of (lines, count)."""
    old = dict(os.environ)
    os.environ.update(env or {})
    r = descry("-q", *options, "-n", "profile-499 /pid == $target/ { @[ustack()] = count(); } tick-700ms { exit(0); }", c=program)
    os.environ.clear()
    os.environ.update(old)
    return r.out


def profile(program, *options):
    r = descry("profile", "-F", "499", "-t", "0.7", "--folded", *options, "-c", program)
    return r.out


# source lines and inlined functions
out = stacks(exe, "-x", "srcline")
check(re.search(r"names`innermost \[inlined\] names\.c:[56]\n +names`middle \[inlined\] names\.c:10\n"
                r" +names`hidden_worker\+0x\w+ names\.c:15\n +names`main\+0x\w+ names\.c:21\n", out), "inlined, with lines", out[:1500])
out = stacks(exe)
check("names`hidden_worker+" in out and "inlined" not in out and ".c:" not in out, "not unless asked for", out[:600])
out = profile(exe, "--lines", "--marks")
check(re.search(r"main:names\.c:21;hidden_worker:names\.c:15;middle:names\.c:10_\[i\];innermost:names\.c:[56]_\[i\] \d+", out),
      "profile --lines", out[:600])
j = descry("--json", "-x", "srcline", "-n", "profile-499 /pid == $target/ { @[ustack()] = count(); } tick-700ms { exit(0); }", c=exe)
check('"function":"innermost","offset":' in j.out and '"inlined":true,"file":"names.c","line":10' in j.out, "json", j.out[:600])

# debugging information that is compressed
subprocess.run(["objcopy", "--compress-debug-sections", exe, TMP + "/zipped"], check=True)
check("C" in sh("readelf -SW %s/zipped | grep '[.]debug_info'" % TMP).stdout.split()[-4], "it is compressed")
out = stacks(TMP + "/zipped", "-x", "srcline")
check(re.search(r"zipped`middle \[inlined\] names\.c:10\n +zipped`hidden_worker\+0x\w+ names\.c:15\n", out), "compressed", out[:1500])

# stripped, with a debuglink
linked = TMP + "/linked"
subprocess.run(["objcopy", "--only-keep-debug", exe, TMP + "/linked.debug"], check=True)
subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + TMP + "/linked.debug", exe, linked], check=True)
out = stacks(linked, "-x", "srcline")
check("linked`hidden_worker+" in out and "names.c:15" in out, "debuglink", out[:800])
os.rename(TMP + "/linked.debug", TMP + "/elsewhere")
check("hidden_worker" not in stacks(linked), "nothing to find without the debug file")
subprocess.run(["cc", "-x", "c", "-", "-o", TMP + "/linked.debug"], input=b"void hidden_worker(void) { } int main(void) { return 0; }", check=True)
check("hidden_worker" not in stacks(linked), "a debug file of something else is not taken")

# stripped, from a server
if not re.search("libdebuginfod", sh("ldconfig -p").stdout):
    print("no libdebuginfod here: debuginfod not tested")
else:
    note = sh("readelf -n %s" % exe).stdout
    build_id = re.search(r"Build ID: (\w+)", note).group(1)
    web = TMP + "/web/buildid/" + build_id
    os.makedirs(web)
    shutil.copy(TMP + "/elsewhere", web + "/debuginfo")
    os.unlink(TMP + "/linked.debug")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **more):
            super().__init__(*args, directory=TMP + "/web", **more)

        def log_message(self, form, *args):
            asked.append(form % args)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"DEBUGINFOD_URLS": "http://127.0.0.1:%d" % server.server_port, "DEBUGINFOD_CACHE_PATH": TMP + "/cache", "DEBUGINFOD_PROGRESS": ""}
    out = stacks(linked, "-x", "srcline", env=env)
    check("linked`hidden_worker+" in out and "names.c:15" in out, "debuginfod", out[:800], asked[:5])
    check(any(build_id in a for a in asked), "the server was asked", asked[:5])
    server.shutdown()

# C++ and Rust
CXX = "#include <string>\nstatic volatile int v;\nnamespace outer { template <class T> struct Box { __attribute__((noinline)) " \
      "void spin(const std::string &s, T n) { for (T i = 0; i < n; i++) v += i + s.size(); } }; }\n" \
      "int main() { outer::Box<int> b; std::string s(10, 'x'); for (;;) { b.spin(s, 1000); v++; } }\n"
subprocess.run(["g++", "-O2", "-x", "c++", "-o", TMP + "/cxx", "-"], input=CXX.encode(), check=True)
out = stacks(TMP + "/cxx")
check("cxx`outer::Box<int>::spin(std::" in out, "C++", out[:600])
if shutil.which("rustc"):
    RUST = "mod deep { #[inline(never)] pub fn spin(n: u64) -> u64 { let mut s = 0; for i in 0..n { s = std::hint::black_box(s + i); } s } }\n" \
           "fn main() { loop { std::hint::black_box(deep::spin(1000)); } }\n"
    open(TMP + "/rs.rs", "w").write(RUST)
    built = subprocess.run(["rustc", "-O", "-o", TMP + "/rs", TMP + "/rs.rs"], stderr=subprocess.PIPE)
    if built.returncode:
        print("rustc does not work here:", built.stderr.decode()[:200])
    else:
        out = stacks(TMP + "/rs")
        check("rs`rs::deep::spin" in out and "rs`rs::main" in out, "Rust", out[:600])

# replaced while it runs: the old file's names
old = TMP + "/replaced"
shutil.copy(exe, old)
p = subprocess.Popen([old])
atexit.register(p.kill)
time.sleep(0.2)
os.unlink(old)
subprocess.run(["cc", "-x", "c", "-", "-o", old], input=b"int another(void) { return 1; } int main(void) { return another(); }", check=True)
r = descry("-q", "-p", str(p.pid), "-n", "profile-499 /pid == $target/ { @[ustack()] = count(); } tick-700ms { exit(0); }")
check("replaced`hidden_worker+" in r.out and "another" not in r.out, "a replaced file", r.out[:600])
p.kill()

# made at run time, named in a perf map, and the process has ended when its stacks are printed
JIT = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void)
{
	/* push %rbp; mov %rsp,%rbp; mov %edi,%eax; 1: dec %eax; jnz 1b; pop %rbp; ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89, 0xf8, 0xff, 0xc8, 0x75, 0xfc, 0x5d, 0xc3 };
	void *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *f;
	memcpy(p, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	fprintf(f, "%lx %zx jit_spin\n", (unsigned long)p, sizeof(code));
	fclose(f);
	fprintf(stderr, "map %s\n", path);
	for (double end = now() + 0.7; now() < end;) ((void (*)(int))p)(100000);
	return 0;
}
"""
jit = TMP + "/jit"
subprocess.run(["cc", "-O1", "-x", "c", "-o", jit, "-"], input=JIT.encode(), check=True)
for what, args, want in (("profile", ["profile", "-F", "499", "--folded"], r"main;jit_spin \d+"),
                         ("keys", ["-q", "-n", "profile-499 /pid == $target/ { @[ustack()] = count(); }"], r"\[jit\]`jit_spin\+0x\w+\n +jit`main\+"),
                         ("actions", ["-q", "-n", "profile-499 /pid == $target/ { ustack(); }"], r"\[jit\]`jit_spin\+0x\w+\n +jit`main\+")):
    r = descry(*args, c=jit)
    check(re.search(want, r.out), "code made at run time", what, r.out[:900])
    for path in re.findall(r"^map (\S+)", r.err, re.M):
        os.unlink(path)
done()
