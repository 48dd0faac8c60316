#!/usr/bin/env python3
# Stacks and names of Go programs, which distributions strip: by Go's own table of functions. A stock one, and programs whose stacks
# are known, position independent and not, with C and without.
# serial
from live import *


def profile(command):
    """Returns {stack: samples}, and descry's message about their ends."""
    path = os.path.join(TMP, "profile.json")
    r = subprocess.run([DESCRY, "profile", "--user", "-F", "997", "--json", "-o", path, "-c", command], capture_output=True, text=True, timeout=120)
    check(r.returncode == 0, "descry profile", command, r.stderr)
    with open(path) as f:
        j = json.load(f)
    stacks = {}

    def walk(node, above):
        names = above + [node["name"]]
        if node.get("self"):
            stacks[";".join(names[2:])] = stacks.get(";".join(names[2:]), 0) + node["self"]
        for child in node.get("children", []):
            walk(child, names)

    walk(j["tree"], [])
    return stacks, j["user_stacks"]


# a stock program
if shutil.which("fzf"):
    with open(os.path.join(TMP, "lines"), "w") as f:
        f.writelines("%d\n" % i for i in range(700000))
    stacks, ends = profile("sh -c 'exec fzf -f 99 < %s/lines > /dev/null'" % TMP)
    total = sum(ends.values()) - ends["not-loaded"]
    check(total > 20 and ends["root"] >= 0.95 * total, "fzf: whole stacks", ends)
    check(any(s.startswith("runtime.goexit;runtime.main;main.main;github.com/junegunn/fzf/src.Run;") for s in stacks), "fzf: names", stacks)
    r = descry("-q", "-n", "pid$target:/usr/bin/fzf:main.main:entry { ustack(); }", c="sh -c 'exec fzf -f 99 < %s/lines > /dev/null'" % TMP)
    check(re.findall(r"`([\w.]+)", r.out) == ["main.main", "runtime.main", "runtime.goexit"], "fzf: a probe", r)
else:
    print("no fzf here: no stock Go program tried")

# known stacks
os.environ.update(GOCACHE=os.path.join(TMP, "go"), GO111MODULE="off")
CHAIN = "main.first;main.second;main.(*worker).third;main.spin"
BACK = ";crosscall2;runtime.cgocallback;runtime.cgocallbackg;runtime.cgocallbackg1;_cgoexp_back;main.spin"


def build(name, mode):
    exe = os.path.join(TMP, name + "-" + mode)
    if shutil.which("go") and sh("go build -buildmode=%s -ldflags='-s -w' -o %s test/tracee/%s.go" % (mode, exe, name)).returncode == 0:
        return exe
    print("no Go compiler here that makes %s.go with -buildmode=%s: not tried" % (name, mode))


for mode in "exe", "pie":
    exe = build("cgo", mode)
    if exe:
        stacks, ends = profile(exe + " 600")
        cgo = [re.sub(r"_[0-9a-f]{12}", "", re.sub(r"(;runtime\.cgocallbackg)+;", r"\1;", s)) for s in stacks]
        call = "runtime.goexit;runtime.main;main.main;main._Cfunc_%s;runtime.asmcgocall;"
        check(any(s.startswith(call % "burn") for s in cgo), "into C", mode, stacks)
        check(any(s.startswith(call % "through") and s.endswith(BACK) for s in cgo), "and back into Go", mode, stacks)
        check(all("asmcgocall" in s for s in cgo if s.endswith("main.spin") and "too new" not in s), "always", mode, stacks)
        check(ends["root"] >= 0.95 * (sum(ends.values()) - ends["not-loaded"]), "whole stacks", mode, ends)
    exe = build("stacks", mode)
    if not exe:
        continue
    stacks, ends = profile(exe + " 1000")
    spinning = {s: n for s, n in stacks.items() if "main.spin" in s and "too new" not in s}
    right = {s: n for s, n in spinning.items()
             if re.match(r"runtime\.goexit;(runtime\.main;main\.main|(main\.main[.\w]*;)?main\.work);" + re.escape(CHAIN) + "($|;runtime\\.(sigreturn|asyncPreempt))", s)}
    check(sum(spinning.values()) > 50 and right == spinning, mode, {s: n for s, n in spinning.items() if s not in right}, sum(spinning.values()))
    check(any("main.work" in s for s in right) and any("main.main;" + CHAIN in s for s in right), "both kinds of goroutines", mode, stacks)
    check(ends["root"] >= 0.95 * (sum(ends.values()) - ends["not-loaded"]), "whole stacks", mode, ends)
done()
