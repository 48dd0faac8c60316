#!/usr/bin/env python3
# A uprobe on a 5-byte nop in the middle of a leaf function: Linux 6.18 makes the nop a call, which overwrites what the
# function keeps below its stack pointer. Such a probe is refused where the kernel does that; the program's own check says so.
# serial
from live import *

prog = os.path.join(BUILD, "test/tracee_redzone")
r = descry("-x", "engine=kernel", "-n", "pid$target:a.out:leaf:5 { @ = count(); }", c=prog)
check("0 wrong" in r.out, "the traced program's data is whole", r)
refused = "would overwrite data" in r.err
fired = re.search(r"^ +100000$", r.out, re.M) is not None
check(refused != fired, "refused with a message, or counted", r)
r = descry("-x", "engine=kernel", "-n", "pid$target:a.out:leaf:entry { @ = count(); }", c=prog)
check("0 wrong" in r.out and re.search(r"^ +100000$", r.out, re.M), "its entry can be probed", r)
done()
