#!/usr/bin/env python3
# descry malloc record says what is not in the file: calls whose memory could not be read, and all behind the point where the file could not
# grow, by a limit or on a full disk, also those of children's files. The program goes on.
import resource

from live import *

SOURCE = r"""
#include <stddef.h>
#include <unistd.h>
static char room[1 << 24];
static volatile size_t used;
__attribute__((noinline)) void *malloc(size_t n) { used = (used + n + 15) & ~(size_t)15; return room + used % (1 << 20); }
__attribute__((noinline)) void free(void *p) { used++; }
__attribute__((noinline)) int posix_memalign(void **p, size_t align, size_t n) { used += n; return 0; }
int main(void)
{
	for (int i = 0; i < 7; i++)
		posix_memalign((void **)8, 64, 100);
	for (unsigned i = 0, x = 1; i < 300000; i++) {
		x = x * 1664525 + 1013904223;
		free(malloc(x % 100000));
	}
	write(1, "end\n", 4);
	return 5;
}
"""
if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
with open("t.c", "w") as f:
    f.write(SOURCE)
check(sh("cc -O1 -fno-builtin -o t t.c").returncode == 0, "built")


def record(limit=None):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.run([DESCRY, "malloc", "record", "-o", "a.dma", "./t"], capture_output=True, text=True, preexec_fn=small if limit else None)


r = record()
if r.returncode != 5:
    skip("a recording is not possible here: " + r.stderr)
m = re.search(r"(\d+) calls were left out: memory that they point to could not be read", r.stderr)
check(m and m[1] == "7", "faults", r)
info = json.loads(subprocess.run([DESCRY, "malloc", "report", "--json", "a.dma"], capture_output=True, text=True).stdout)
check(info["lost"] >= 7, "the file has the losses", info["lost"])

r = record(1 << 20)
m = re.search(r"(\d+) of (\d+) calls are in the file", r.stderr)
check(r.stdout == "end\n" and "File too large" in r.stderr and m and 0 < int(m[1]) < int(m[2]), "a limit of the file's size", r)
p = subprocess.run([DESCRY, "malloc", "report", "a.dma"], capture_output=True, text=True)
check(p.returncode == 0 and "the recording was cut off" in p.stdout, "the file is valid up to there", p)

# a disk that becomes full, of a command with children; the file system is in a mount namespace of its own
TREE = os.path.join(BUILD, "test", "tracee_recorded")
SCRIPT = """mount -t tmpfs -o size=1m none full || exit 77
'%s' malloc record -o full/b.dma sh -c "'%s' busy 300000; '%s' busy 300000; '%s' busy 100; exit 6" 2>said
echo status $?
# one that begins on the full disk is empty
for f in full/*.dma; do [ -s $f ] || continue; '%s' malloc report --json $f >$(basename $f).json; echo report $?; done
""" % (DESCRY, TREE, TREE, TREE, DESCRY)
os.mkdir("full")
p = subprocess.run(["unshare", "-m", "sh", "-c", SCRIPT], capture_output=True, text=True, stdin=subprocess.DEVNULL)
if p.returncode == 77:
    skip("no file system can be mounted: " + p.stderr)
said = open("said").read()
m = [(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) calls are in the file", said)]
check(p.stdout.startswith("end\nend\nend\nstatus 1\n") and "No space left on device" in said and any(0 < a < b for a, b in m), "a full disk", p, said)
files = [json.load(open(f)) for f in os.listdir(".") if f.endswith(".json")]
check(len(files) >= 2 and p.stdout.count("report 0") == len(files), "the files are valid", p.stdout, said)
cut = [r for r in files if not r["complete"]]
check(cut and max(r["malloc"] for r in cut) > 1000 and all(r["damage"] is None and r["unknown"] == r["replaced"] == 0 for r in cut if not r["forked"]), "up to there",
      [(r["malloc"], r["complete"], r["unknown"]) for r in files])
done()
