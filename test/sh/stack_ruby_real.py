#!/usr/bin/env python3
# descry stack shows the Ruby functions of real programs, equal to what rb_profile_frames() says at the same instruction: the processes are
# stopped at random moments. RUBIES: the interpreters to compare, instead of Debian's; SAMPLES: how many stacks of each program.
import atexit
import os
import random
import re
import shutil
import tempfile

import real_ruby
from at_signal import *
from checks import *

SAMPLES = int(os.environ.get("SAMPLES", "30"))
RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
TMP = tempfile.mkdtemp(prefix="descry-stack-ruby-real-")
# C functions whose blocks in C outlive them: Method#to_proc and Enumerator::Lazy. "?": frames of no function
MAKE_BLOCKS = "to_proc", "map", "reject", "first"
atexit.register(shutil.rmtree, TMP, True)


def build():
    source, library = os.path.join(TMP, "truth.c"), os.path.join(TMP, "truth.so")
    with open(source, "w") as f:
        f.write(real_ruby.EXTENSION)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def ours_of(text):
    found = re.findall(r"^ +([^ `]+\.(?:rb|gemspec)|<internal:[^`]*>|\(eval[^`]*\)|\(erb\)|-e|\?)`(.*):(\d+)$", text, re.M)
    return [(f, method(name), int(line)) for f, name, line in found]


def method(name):
    """Without its class, and without the words for a block and the like: rb_profile_frames() has neither."""
    return re.sub(r"^((block|block \(\d+ levels\)|rescue|ensure) in )*(([A-Z]\w*(::\w+)*|#<.*>)[#.])?", "", name)


def theirs_of(said):
    """A C function has no file and line here. The bottom may be a frame in which no Ruby runs."""
    check(said.endswith("end\n"), "the handler has printed a whole stack", said)
    found = [(f, name, int(line)) for f, name, line in (row.split("\t") for row in said.splitlines()[:-1])]
    return found[:-1] if found and found[-1] == ("-", "?", 0) else found


def are_like(ours, theirs):
    """rb_profile_frames() also has frames of blocks that are C functions, by the name of the method that has made the block. Backtraces
    leave them out, and so does descry."""
    at = 0
    for i, frame in enumerate(theirs):
        is_c = frame[0] == "-"
        # of code that eval() has made, it gives the file of the method that is around it
        any_file = is_c or at < len(ours) and ours[at][0].startswith("(")
        if at < len(ours) and (ours[at] == frame or any_file and ours[at][1] == frame[1] and (is_c or ours[at][2] == frame[2])):
            at += 1
        elif not is_c or frame[1] not in ("?", *MAKE_BLOCKS) and frame not in theirs[i + 1:]:
            return False
    return at == len(ours)


def compare(ruby, program, library):
    out = os.path.join(TMP, "said")
    p = subprocess.Popen([ruby, os.path.join(TMP, program)], stdout=subprocess.PIPE, env=dict(os.environ, TRUTH=library, TRUTH_FILE=out))
    done, frames, unlike = 0, 0, []
    try:
        check(p.stdout.readline() == b"ready\n", ruby, program, "is ready")
        while done < SAMPLES:
            tid = random.choice(threads_except(p.pid, "ruby-timer"))
            got = sample(p.pid, out, tid)
            if got is None:
                raise SystemExit("FAILED: %s %s has ended" % (ruby, program))
            if not got:
                continue
            text = threads(got[0]).get(tid, "")
            ours, theirs = ours_of(text), theirs_of(got[1])
            done += 1
            frames += len(theirs)
            if not are_like(ours, theirs):
                unlike.append("ours   %s\ntheirs %s\n%s" % (ours, theirs, text))
        print("%s %s: %d of %d equal, %.1f frames each" % (ruby, program, done - len(unlike), done, frames / done))
        check(not unlike, ruby, program, "unlike", "\n".join(unlike[:3]))
    finally:
        p.kill()
        p.wait()


for name, text in real_ruby.PROGRAMS.items():
    with open(os.path.join(TMP, name), "w") as f:
        f.write(text)
library = build()
for ruby in RUBIES:
    for program in os.environ.get("PROGRAMS", "").split() or real_ruby.PROGRAMS:
        compare(ruby, program, library)
done()
