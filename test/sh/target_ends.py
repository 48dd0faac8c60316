#!/usr/bin/env python3
# A process of -p that ends between being found and being traced has ended before anything happened in it: no error.
import threading

from live import *

FIFO = TMP + "/program.d"
os.mkfifo(FIFO)
for engine, program in ("inproc", "syscall::getppid:entry { @ = count(); }"), ("inproc", "profile-97 { @ = count(); }"):
    p = subprocess.Popen(["sleep", "1000"])
    s = start("-x", "engine=" + engine, "-p", str(p.pid), "-s", FIFO)
    # descry opens the program when it has found the process
    opened = []
    writer = threading.Thread(target=lambda: opened.append(open(FIFO, "w")))
    writer.start()
    writer.join(30)
    if not check(opened, "descry reads its program", engine):
        break
    p.kill()
    p.wait()
    opened[0].write(program)
    opened[0].close()
    r = finish(s)
    check(r.rc == 0 and "pid %d has exited" % p.pid in r.err and len(r.err.splitlines()) <= 2, "gone before it was traced", engine, program, r)
# one that was never there is an error
r = descry("-p", str(p.pid), "-n", "BEGIN { exit(0); }", rc=1)
check("failed to grab" in r.err, "never there", r)
done()
