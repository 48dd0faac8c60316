#!/usr/bin/env python3
# descry malloc record -p: calls of allocators that the program loads by dlopen(3) after the attach, which have names of their own (one beside the
# program, loaded by its path) or the C library's (jemalloc, mimalloc and tcmalloc, if they are installed), are counted exactly, and so are those of
# a library with operator new.
from live import *

ROUNDS = 50
# jemalloc has variables of a kind for which the dynamic linker reserves little room
ENV = dict(os.environ, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=8192")
if not shutil.which("cc"):
    skip("no C compiler")
with open(os.path.join(TMP, "own.c"), "w") as f:
    f.write("""#include <stddef.h>
static char pool[4 << 20], *at = pool;
#define NOINLINE __attribute__((noinline))
NOINLINE void *je_malloc(size_t n) { char *p = at; at += (n + 15) & ~15ul; return p; }
NOINLINE void je_free(void *p) { __asm__ volatile("" : : "r"(p)); }
NOINLINE void *je_realloc(void *p, size_t n) { void *q = je_malloc(n); je_free(p); return q; }
""")
# an operator that calls malloc(3) counts as that call
with open(os.path.join(TMP, "new.c"), "w") as f:
    f.write("""#include <stdlib.h>
void *_Znwm(size_t n) { void *volatile p = malloc(n); return p; }
void _ZdlPv(void *p) { free(p); __asm__ volatile(""); }
""")
with open(os.path.join(TMP, "main.c"), "w") as f:
    f.write("""#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct pollfd in = { 0, POLLIN, 0 };
	char c, text[64];

	write(1, "r", 1);
	while (!poll(&in, 1, 1)) { void *volatile q = malloc(333); free(q); }
	read(0, &c, 1);
	for (int i = 1; i + 1 < argc; i += 2) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL), *p;
		void *(*get)(size_t) = 0, *(*again)(void *, size_t) = 0;
		void (*put)(void *) = 0;

		for (int k = 0; lib && k < 3; k++) {
			static const char *const names[2][3] = { { "malloc", "realloc", "free" }, { "_Znwm", "", "_ZdlPv" } };
			snprintf(text, sizeof(text), "%s%s", argv[i + 1][0] == '+' ? "" : argv[i + 1], names[argv[i + 1][0] == '+'][k]);
			*(k == 0 ? (void **)&get : k == 1 ? (void **)&again : (void **)&put) = *text ? dlsym(lib, text) : 0;
		}
		if (!get || !put)
			return 9;
		for (int k = 0; k < ROUNDS; k++) {
			p = get((size_t)1 << (13 + i));
			if (again)
				p = again(p, (size_t)1 << (14 + i));
			put(p);
		}
	}
	write(1, "d", 1);
	while (read(0, &c, 1) > 0) ;
	return 0;
}
""")
for cmd in ("cc -w -O1 -fno-builtin -shared -fPIC -o own.so own.c", "cc -w -O1 -fno-builtin -shared -fPIC -o libnew.so new.c",
            "cc -w -O1 -fno-builtin -DROUNDS=%d -o main main.c -ldl" % ROUNDS):
    subprocess.run(cmd, shell=True, cwd=TMP, check=True)

libraries = [(os.path.join(TMP, "own.so"), "je_"), (os.path.join(TMP, "libnew.so"), "+")]
for name, prefix in ("libjemalloc.so.2", ""), ("libmimalloc.so.2", "mi_"), ("libtcmalloc_minimal.so.4", "tc_"):
    if subprocess.run([os.path.join(TMP, "main"), name, prefix], input=b"x", stdout=subprocess.DEVNULL, env=ENV).returncode == 0:
        libraries.append((name, prefix))
    else:
        print("(%s cannot be loaded here)" % name)

FILE = os.path.join(TMP, "a.dma")
p = subprocess.Popen([os.path.join(TMP, "main"), *(x for pair in libraries for x in pair)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
kill_at_end(p)
check(p.stdout.read(1) == b"r", "it runs")
d = subprocess.Popen([DESCRY, "malloc", "record", "-k", "8", "-o", FILE, "-p", str(p.pid)], stderr=subprocess.PIPE, text=True)
kill_at_end(d)
while d.poll() is None and not (os.path.exists(FILE) and os.stat(FILE).st_size > 100):
    time.sleep(0.01)
check(d.poll() is None, "its calls are recorded")
p.stdin.write(b"x")
p.stdin.flush()
check(p.stdout.read(1) == b"d", "it has allocated", p.poll())
d.send_signal(signal.SIGINT)
said = d.communicate()[1]
check(d.returncode == 0 and " were " not in said.replace("that were allocated before", ""), "nothing is missing", said)
q = subprocess.run([DESCRY, "malloc", "report", "--json", FILE], capture_output=True, text=True)
r = json.loads(q.stdout) if check(q.returncode == 0, "report", q.stderr) else {}
check(r.get("lost") == 0 and r.get("complete"), "whole", r.get("lost"))
sizes = {x["to"]: x["blocks"] for x in r.get("sizes", [])}
for i, (name, prefix) in enumerate(libraries):
    got = [sizes.get(1 << (14 + 2 * i + k)) for k in (0, 1)]
    check(got[0] == ROUNDS and (prefix == "+" or got[1] == ROUNDS), name, prefix, got)
    check(any(os.path.basename(name).split(".so")[0] in f for x in r["bytes_stacks"] for f in x["frames"][:2]), "its stacks", name)
check(r["unknown"] <= 1 and r["replaced"] == 0, "each free has its block", r["unknown"], r["replaced"])
p.stdin.close()
check(p.wait() == 0, "the program goes on")
done()
