#!/usr/bin/env python3
# Programs and libraries on an overlayfs: walked by the kernel's facts about their files, from the first sample on, and named.
# serial
from live import *

LIB = "static volatile unsigned long s;\n" \
      "__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) s += i; }\n" \
      "__attribute__((noinline)) int in_library(int n) { int r = n ? in_library(n - 1) + 1 : (spin(4000000), 0); s++; return r; }\n"
MAIN = "int in_library(int);\n__attribute__((noinline)) static int from_main(void) { return in_library(10) + 1; }\n" \
       "int main(int argc, char **argv) { int n = argc > 1 ? 100 : 1, r = 0; while (n--) r |= from_main(); return r == 11 ? 0 : 1; }\n"
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


def shares(command):
    """Samples of the program, those in the library, those whose stack is right, those that report an early end."""
    r = descry("--json", "-n", PROGRAM, c=command)
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


# Programs that live for 15 ms: their first samples are walked before the library's tables are there, and report this. How many these are
# depends on the machine's speed; that none is wrong does not. By lists of mappings, which are never made of such a process, none would
# be named.
MANY = "sh -c 'for i in $(seq 30); do %s/overlaid; done'" % merged
for when in "first", "again":
    total, named, right, cut = shares(MANY)
    check(total > 40 and named > 0.6 * total, "samples are named", when, total, named)
    check(right + cut > 0.97 * named, "stacks are right, or are said to be cut short", when, named, right, cut)

# A program that lives for a second or more, from a file in the lower layer; then from a file in the upper, with
# another inode below it.
LONG = merged + "/overlaid long"
for when in "lower", "upper":
    total, named, right, cut = shares(LONG)
    check(total > 40 and right > 0.9 * named > 0.5 * total, "stacks are right", when, total, named, right, cut)
    subprocess.run(["touch", merged + "/libover.so"], check=True)
done()
