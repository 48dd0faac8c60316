#!/usr/bin/env python3
# descry malloc record of root writes files beside the named one: one of another user's that has such a name stays, and another name is taken.
# A program that executes the next one again and again has a file for each.
import glob

from live import *

if os.geteuid():
    skip("needs root")
os.chmod(TMP, 0o1777)
FIRST = os.path.join(TMP, "x.dma")


def record(command):
    return subprocess.run([DESCRY, "malloc", "record", "-o", FIRST, "--", "sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)


p = record("cd %s; echo theirs >x.$$.dma; ln -s nothing x.$$-2.dma; chown -h 65534 x.*.dma; exec ls x.$$.dma" % TMP)
theirs = os.path.join(TMP, p.stdout.strip())
check(p.returncode == 0 and open(theirs).read() == "theirs\n" and os.stat(theirs).st_uid == 65534, "another user's file stays", p)
second, third = theirs.replace(".dma", "-2.dma"), theirs.replace(".dma", "-3.dma")
check(os.path.islink(second) and os.stat(third).st_size > 100 and os.stat(third).st_uid == 0, "the next name that is free", glob.glob(TMP + "/*"), p)
report = subprocess.run([DESCRY, "malloc", "report", FIRST], capture_output=True, text=True)
check(os.path.basename(third) in report.stdout, "the first file lists it", report)

again = "n=$0; [ $n = 0 ] && exec ls /; exec sh -c \"$1\" $((n - 1)) \"$1\""
p = record("exec sh -c '%s' 6 '%s'" % (again, again))
names = {os.path.basename(f) for f in glob.glob(TMP + "/x.*-*.dma")} - {os.path.basename(second), os.path.basename(third)}
check(p.returncode == 0 and {re.sub(r"x\.\d+-(\d+)\.dma", r"\1", n) for n in names} == {str(i) for i in range(2, 9)}, "a file for each program", names, p)
done()
