# Programs and libraries on an overlayfs: walked by what the kernel knows of their files, from the first sample on, and named.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *

LIB = "static volatile unsigned long s;\n" \
      "__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) s += i; }\n" \
      "__attribute__((noinline)) int in_library(int n) { int r = n ? in_library(n - 1) + 1 : (spin(4000000), 0); s++; return r; }\n"
MAIN = "int in_library(int);\n__attribute__((noinline)) static int from_main(void) { return in_library(10) + 1; }\n" \
       "int main(void) { return from_main() == 11 ? 0 : 1; }\n"
lower, upper, work, merged = (os.path.join(TMP, n) for n in ("lower", "upper", "work", "merged"))
for d in lower, upper, work, merged:
    os.mkdir(d)
CC = ["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-x", "c", "-"]
subprocess.run(CC + ["-shared", "-fPIC", "-o", lower + "/libover.so"], input=LIB.encode(), check=True)
subprocess.run(CC + ["-o", lower + "/overlaid", "-L" + lower, "-lover", "-Wl,-rpath," + merged], input=MAIN.encode(), check=True)
r = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % (lower, upper, work), merged],
                   stderr=subprocess.PIPE, text=True)
if r.returncode:
    skip("an overlayfs cannot be mounted here: " + r.stderr.strip())
atexit.register(subprocess.run, ["umount", "-l", merged])
PROGRAM = 'profile-1999 /execname == "overlaid" && arg1 != 0/ { @[ustack(60)] = count(); }'


def shares():
    r = descry("--json", "-n", PROGRAM, c="sh -c 'for i in $(seq 30); do %s/overlaid; done'" % merged)
    total = right = named = cut = 0
    for j in r.json():
        if j["type"] != "aggregation":
            continue
        names = [f.get("function") for f in j["keys"][0] if "function" in f]
        total += j["value"]
        cut += j["value"] * any("too new" in f.get("end", "") for f in j["keys"][0])
        if "spin" in str(names) or "in_library" in names:
            named += j["value"]
            right += j["value"] * (names.count("in_library") == 11 and "from_main" in names and "main" in names)
    return total, named, right, cut


first, again = shares(), shares()
if os.environ.get("PRINT"):
    print("samples, in the library, right, without tables:", first, again)
check(again[0] > 40 and again[1] > 0.6 * again[0], "samples are named", again)
# The list of a process that lives for 15 ms is never made: by lists alone none would be right. The first ones are walked
# before the library's tables are there.
check(again[2] > 0.6 * again[1], "stacks are right", again)
check(again[2] + again[3] > 0.97 * again[1], "or are said to be cut short", again, first)
# Its file in the upper layer now, with another inode below it.
subprocess.run(["touch", merged + "/libover.so"], check=True)
last = shares()
check(last[2] > 0.6 * last[1] and last[0] > 40, "a file that was copied up", last)
done()
END
