#!/usr/bin/env python3
# Thousands of distinct stacks: none is lost, and the memory they take is bounded and said. bench/unwind BUILD distinct does it for a
# minute. PRINT=1 prints the figures.
# serial
from live import *

# 2^14 paths down, taken one after the other.
C = "static volatile unsigned long s;\n#define N __attribute__((noinline)) static void\n" \
    "N leaf(void) { for (int i = 0; i < 300; i++) s += i; }\n"
for i in range(14):
    below = "leaf()" if i == 0 else "(n & 1 ? a%d(n >> 1) : b%d(n >> 1))" % (i - 1, i - 1)
    for f in "ab":
        C += "N %s%d(unsigned n) { %s; s++; }\n" % (f, i, below)
C += "int main(void) { for (unsigned n = 0;; n += 7919) n & 1 ? a13(n >> 1) : b13(n >> 1); }\n"
exe = TMP + "/many"
subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "-x", "c", "-o", exe, "-"],
               input=C.encode(), check=True)
p = subprocess.Popen([exe])
atexit.register(p.kill)
path = TMP + "/many.json"
r = descry("profile", "-p", str(p.pid), "-F", "4999", "-t", "5", "-o", path)
j = json.load(open(path))
if os.environ.get("PRINT"):
    print(r.err)
check(j["lost"] == 0, "nothing is lost", j["lost"], r.err)
check(j["stacks"] > 1500 and j["samples"] >= j["stacks"], "distinct stacks", j["stacks"], j["samples"])
check(j["user_stacks"]["root"] > 0.99 * j["samples"], "complete", j["user_stacks"])
ways = []


def walk(node, above):
    names = above + [node["name"]]
    if node["name"] == "leaf":
        ways.append(names)
    for child in node.get("children", []):
        walk(child, names)


walk(j["tree"], [])
whole = [w for w in ways if "main" in w and sum(1 for n in w if re.match(r"[ab]\d+\b", n)) == 14]
check(len(whole) > 0.99 * len(ways) > 1000, "every one is a way from main to leaf", len(whole), len(ways), ways[:1])
check(0 < j["map_bytes"] < 150e6 and j["peak_bytes"] < 250e6 and j["table_bytes"] < 64e6, "memory", j["map_bytes"], j["peak_bytes"])
check(re.search(r"\d+ MB of tables, \d+ MB of stacks, \d+ MB here", r.err), "it is said", r.err)
done()
