#!/usr/bin/env python3
# A stranger's names cannot make lines of their own: functions of a program with line feeds in their names, in stacks, lists
# of probes and output, and classes of a heap dump.
import json
import os
import shutil
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
NAME = "evil\nforged;line 99\x1b[31m\t\x7f"
SHOWN = "evil?forged;line 99?[31m??"
if not shutil.which("cc") or not shutil.which("objcopy"):
    skip("no C compiler or objcopy here")


def run(*args):
    r = subprocess.run([DESCRY, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check("\nforged" not in r.stdout + r.stderr and "\x1b" not in r.stdout + r.stderr, "a forged line", args, r.stdout, r.stderr)
    return r.stdout


with tempfile.TemporaryDirectory() as tmp:
    with open(tmp + "/p.c", "w") as f:
        f.write("#include <unistd.h>\nvoid hidden(void) { for (;;) { getppid(); usleep(10000); } }\nint main(void) { hidden(); return 0; }\n")
    subprocess.run(["cc", "-O0", "-c", "-o", tmp + "/p.o", tmp + "/p.c"], check=True)
    subprocess.run(["objcopy", "--redefine-sym", "hidden=" + NAME, tmp + "/p.o", tmp + "/q.o"], check=True)
    subprocess.run(["cc", "-o", tmp + "/p", tmp + "/q.o"], check=True)
    p = kill_at_end(subprocess.Popen([tmp + "/p"]))
    pid = str(p.pid)
    # the process may not have come to main() yet
    while SHOWN not in (text := run("stack", "-p", pid)) and not failed():
        pass
    check("p`" + SHOWN in text, "stack", text)
    text = run("-l", "-n", "pid$target:p:evil*:entry", "-p", pid)
    check(SHOWN in text, "-l", text)
    text = run("-q", "-x", "engine=inproc", "-n", "pid$target::getppid:entry { ustack(); @[ustack(2), usym(ucaller)] = count(); exit(0); }", "-p", pid)
    check(text.count(SHOWN) == 3, "ustack()", text)
    text = run("-c", tmp + "/p", "-n", "pid$target:p:evil*:entry { exit(0); }")
    check(SHOWN + ":entry" in text, "the line of a probe", text)

    with open(tmp + "/heap.json", "w") as f:
        for o in ({"type": "ROOT", "root": "vm\nFORGED ROOT", "references": ["0x1000"]},
                  {"address": "0x1000", "type": "CLASS", "name": NAME, "memsize": 4000, "references": ["0x1008"]},
                  {"address": "0x1008", "type": "OBJECT", "class": "0x1000", "memsize": 4000}):
            f.write(json.dumps(o) + "\n")
    text = run("heap", tmp + "/heap.json")
    check("class " + SHOWN in text and "vm?FORGED ROOT" in text, "a heap", text)
    run("heap", "-o", tmp + "/heap.folded", tmp + "/heap.json")
    with open(tmp + "/heap.folded") as f:
        lines = f.read().splitlines()
    check(len(lines) == 2 and all(line.split(";")[0].startswith("class evil?forged,line 99?") for line in lines), "a heap's folded text", lines)
done()
