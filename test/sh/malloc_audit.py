#!/usr/bin/env python3
# descry malloc record -k: stacks of a program of Debian, which has neither frame pointers nor symbols, are those of glibc's backtrace(3) at the
# same calls. A second preloaded library has a malloc(3) that writes them down. In the place of the interpreter's loop are functions of Python
# (malloc_languages.py), so the frames of both are left out.
from collections import Counter

from live import *

SOURCE = r"""#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* malloc(3) of the audited program: writes backtrace(3) of each call. */
void *__libc_malloc(size_t n);
static __thread int inside;
static int fd = -1;
__attribute__((constructor)) static void begin(void)
{
	void *p[4];
	inside = 1;
	backtrace(p, 4);
	fd = open(getenv("AUDIT_FILE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	inside = 0;
}
void *malloc(size_t n)
{
	static __thread void *pcs[200];
	static __thread char line[8192];
	int k, at = 0;
	void *r;
	if (inside || fd < 0)
		return __libc_malloc(n);
	inside = 1;
	r = __libc_malloc(n);
	k = backtrace(pcs, 200);
	at = sprintf(line, "-");
	for (int i = 0; i < k && at < 8000; i++) {
		Dl_info d;
		const char *name = "?";
		if (dladdr((char *)pcs[i] - 1, &d) && d.dli_fname)
			name = strrchr(d.dli_fname, '/') ? strrchr(d.dli_fname, '/') + 1 : d.dli_fname;
		at += snprintf(line + at, 120, " %.60s+%lx", name, (unsigned long)((char *)pcs[i] - (char *)d.dli_fbase));
	}
	line[at++] = '\n';
	write(fd, line, at);
	inside = 0;
	return r;
}
"""

PYTHON = os.path.realpath("/usr/bin/python3")
if not (os.path.exists(PYTHON) and shutil.which("cc") and shutil.which("nm") and shutil.which("readelf")):
    print("needs /usr/bin/python3, cc and binutils")
    sys.exit(77)
NAME = os.path.basename(PYTHON)
AUDIT, TEXT, FILE = (os.path.join(TMP, n) for n in ("audit.so", "audit.txt", "a.dma"))
with open(os.path.join(TMP, "audit.c"), "w") as f:
    f.write(SOURCE)
check(subprocess.run(["cc", "-w", "-O1", "-shared", "-fPIC", "-o", AUDIT, os.path.join(TMP, "audit.c")]).returncode == 0, "cc")
p = subprocess.run([DESCRY, "malloc", "record", "-k", "127", "-o", FILE, PYTHON, "-c", "import json; json.loads(json.dumps([{'a': [i, str(i)]} for i in range(300)]))"],
                   env=dict(os.environ, LD_PRELOAD=AUDIT, AUDIT_FILE=TEXT), stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(p.returncode == 0, "record", p)
r = json.loads(subprocess.run([DESCRY, "malloc", "report", "--json", "-n", "100000000", FILE], capture_output=True, text=True).stdout)

# functions of the dynamic symbol table, by address; the report names others by the address's distance from the file's beginning
symbols = []
for line in subprocess.run(["nm", "-D", "-S", "--defined-only", PYTHON], capture_output=True, text=True).stdout.splitlines():
    part = line.split()
    if len(part) == 4 and part[2] in "TtWwi":
        symbols.append((int(part[0], 16), int(part[1], 16), part[3].split("@")[0]))
starts = {name: at for at, size, name in symbols}
loads = [l.split() for l in subprocess.run(["readelf", "-lW", PYTHON], capture_output=True, text=True).stdout.splitlines() if l.split()[:1] == ["LOAD"]]
base = int(loads[0][2], 16)


def is_loop(frame):
    return frame == ("function", starts["_PyEval_EvalFrameDefault"])


def reported(frame):
    if re.match(r".*`.*:\d+$", frame):
        return None
    m = re.match(r"(.+?)([`+])(.*)$", frame)
    if not m or m[1] != NAME:
        return m[1] if m else frame
    return int(m[3], 16) if m[2] == "+" else ("function", starts.get(m[3]))


known = {}


def audited(frame):
    if frame not in known:
        name, at = frame.rsplit("+", 1)
        at = int(at, 16)
        inside = [s for s, size, _ in symbols if s <= at - 1 + base < s + size]
        known[frame] = name if name != NAME else ("function", inside[0]) if inside else at
    return known[frame]


got, want, named = Counter(), Counter(), 0
for s in r["count_stacks"]:
    frames = [reported(f) for f in s["frames"]]
    named += s["blocks"] if None in frames else 0
    got[tuple(f for f in frames if f is not None and not is_loop(f))] += s["blocks"]
for line in open(TEXT):
    frames = line.split()[1:]
    # descry itself is audited, too
    if any(f.startswith(NAME + "+") for f in frames):
        own = max(i for i, f in enumerate(frames[:3]) if f.startswith("audit.so+") or f.split("+")[0].isdigit())
        frames = [audited(f) for f in frames[own + 1:]]
        want[tuple(f for f in frames if not is_loop(f))] += 1
wrong = want - got
check(sum(want.values()) > 500 and not wrong, "of", sum(want.values()), "differ", sum(wrong.values()), list(wrong.items())[:3])
check(named > 500, "functions of Python", named)
done()
