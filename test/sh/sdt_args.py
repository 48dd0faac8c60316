#!/usr/bin/env python3
# args[] of sdt are the kernel's parameters. Under the name dtrace and with -x sdtargs=fields they are the fields of the event's text form,
# as in Oracle's DTrace.
# serial
# covers: sdtargs
import live
from live import *

OURS = live.DESCRY
NAMED = TMP + "/dtrace"
os.symlink(os.path.abspath(OURS), NAMED)
RENAME = "sdt:task::task_rename"
# the traced process renames itself: both forms of args[] give the same result
SELF = """#include <stdio.h>
#include <sys/prctl.h>
int main(void) { prctl(PR_SET_NAME, "renamed"); prctl(PR_SET_NAME, "again"); return 0; }
"""
open(TMP + "/self.c", "w").write(SELF)
check(sh("cc -o %s/selfname %s/self.c" % (TMP, TMP)).returncode == 0, "the program")
FIELDS = RENAME + " /args[0] == $target/ { printf(\"%s %s %d %d\\n\", args[1], stringof(args[2]), args[3], arg0 == $target); }"
KERNEL = RENAME + " /pid == $target/ { printf(\"%s %s\\n\", args[0]->comm, stringof(args[1])); }"
WANT = ["selfname renamed 0 1", "renamed again 0 1"]


def renames(binary, program, *more):
    live.DESCRY = binary
    r = descry("-q", *more, "-n", program, c=TMP + "/selfname")
    return [l for l in r.out.splitlines() if l.split()[:1] in (["selfname"], ["renamed"])], r


def types(binary, *more):
    return re.findall(r"args\[\d+\]: (.*)", sh(" ".join([binary, *more, "-l", "-v", "-n", RENAME])).stdout)


score = open("/proc/self/oom_score_adj").read().strip()
want = [w.replace(" 0 ", " %s " % score) for w in WANT]
for binary, more in (NAMED, ()), (OURS, ("-x", "sdtargs=fields")):
    got, r = renames(binary, FIELDS, *more)
    check(got == want, "fields", binary, r)
    check(types(binary, *more) == ["pid_t", "char [16]", "char [16]", "short"], "types of fields", types(binary, *more))
for binary, more in (OURS, ()), (NAMED, ("-x", "sdtargs=kernel")):
    got, r = renames(binary, KERNEL, *more)
    check(got == ["selfname renamed", "renamed again"], "the kernel's", binary, r)
    check(types(binary, *more)[0] == "struct task_struct *" and len(types(binary, *more)) == 2, "types of the kernel's", types(binary, *more))
# the D program sets the option; clauses before and behind use the same event without arguments
both = "#pragma D option sdtargs=fields\n%s /pid == $target/ { @a[probename] = count(); }\n%s\nsdt:task:: /pid == $target/ { @b[probename] = count(); }" % (RENAME, FIELDS)
open(TMP + "/both.d", "w").write(both)
live.DESCRY = OURS
r = descry("-q", "-s", TMP + "/both.d", c=TMP + "/selfname")
rows = dict(r.table())
check(rows.get(("task_rename",), 0) >= 2 and all(w in r.out for w in want), "clauses of one probe", r)
# the record holds the string at an offset (__data_loc); args[] of rawtp stay the kernel's parameters
r = descry("-q", "-x", "sdtargs=fields", "-n", 'sdt:sched::sched_process_exec /pid == $target/ { printf("file %s %d\\n", stringof(args[0]), args[1]); }'
           " rawtp:sched::sched_process_exec /pid == $target/ { printf(\"raw %s\\n\", stringof(args[2]->filename)); }",
           c="sh -c 'exec %s/selfname'" % TMP)
check(re.search(r"^file %s/selfname \d+$" % TMP, r.out, re.M) and "raw %s/selfname" % TMP in r.out, "__data_loc", r)
# a stack begins at the event, like the stack of a raw tracepoint
for how in "fields", "kernel":
    r = descry("-q", "-x", "sdtargs=" + how, "-n", RENAME + " /pid == $target && arg0/ { stack(); exit(0); }", c=TMP + "/selfname")
    check("__set_task_comm" in r.out or "prctl" in r.out, "stack", how, r)
done()
