#!/usr/bin/env python3
# The debugging information in another user's file is not read, and descry says which file that is; -x foreigndebug reads it.
from live import *

if os.geteuid() != 0 or not shutil.which("cc"):
    skip("needs root and cc")
SOURCE, PROGRAM = os.path.join(TMP, "p.c"), os.path.join(TMP, "p")
with open(SOURCE, "w") as f:
    f.write("#include <unistd.h>\nstruct own_thing { long a[3]; } thing;\nint main(void) { return (int)thing.a[0] + pause(); }\n")
subprocess.run(["cc", "-g", "-o", PROGRAM, SOURCE], check=True)
p = subprocess.Popen([PROGRAM])
atexit.register(p.kill)


def size(*options):
    return subprocess.run([DESCRY, "-q", "-x", "engine=interp", *options, "-p", str(p.pid), "-n",
                           'BEGIN { printf("%d", sizeof(struct own_thing)); exit(0); }'], stdin=subprocess.DEVNULL, capture_output=True, text=True)


r = size()
check(r.returncode == 0 and r.stdout.strip() == "24" and r.stderr == "", "root's file", r)
os.chown(PROGRAM, 65534, 65534)
r = size()
check(r.returncode == 1 and PROGRAM + " is another user's or a container's" in r.stderr, "another user's file", r)
r = size("-x", "foreigndebug")
check(r.returncode == 0 and r.stdout.strip() == "24" and r.stderr == "", "-x foreigndebug", r)
done()
