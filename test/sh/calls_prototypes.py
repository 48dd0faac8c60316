#!/usr/bin/env python3
# descry calls: prototypes of the C library. Values of the system's databases are readable, passwords are not shown, and of the functions that
# ltrace's own file of prototypes names, where it is installed, each one of the C library has a prototype here.
from live import *

SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <syslog.h>
#include <unistd.h>
int main(void)
{
	struct utsname u;
	struct rlimit r;
	struct in_addr a;

	uname(&u);
	getpwuid(0);
	getpwnam("no such user");
	getgrgid(0);
	getrlimit(RLIMIT_NOFILE, &r);
	inet_aton("127.0.0.1", &a);
	inet_ntoa(a);
	openlog("me", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	setpgid(-1, -1);
	umask(022);
	gai_strerror(EAI_NONAME);
	return 0;
}
"""
WANT = [r'uname\({ sysname="Linux", nodename="[^"\\]*", release="[^"\\]+" }\) = 0',
        r'getpwuid\(0\) = { pw_name="root", pw_uid=0, pw_gid=0, pw_gecos="[^"]*", pw_dir="/root", pw_shell="[^"]*" }',
        r'getpwnam\("no such user"\) = nil',
        r'getgrgid\(0\) = { gr_name="root", gr_passwd="[^"]*", gr_gid=0, gr_mem=0x\w+ }',
        r'getrlimit\(RLIMIT_NOFILE, { rlim_cur=\d+, rlim_max=\d+ }\) = 0',
        r'inet_aton\("127\.0\.0\.1", 0x100007f\) = 1',
        r'inet_ntoa\(0x100007f\) = "127\.0\.0\.1"',
        r'openlog\("me", LOG_PID\|LOG_NDELAY, LOG_DAEMON\) = <void>',
        r'setpgid\(-1, -1\) = -1 (EINVAL|ESRCH|EPERM) \(.*\)',
        r'umask\(022\) = 0?\d+',
        r'gai_strerror\(-2\) = "Name or service not known"']

if not shutil.which("cc"):
    skip("no C compiler here")
os.chdir(TMP)
with open("t.c", "w") as f:
    f.write(SOURCE)
check(sh("cc -O0 -fno-builtin -o t t.c").returncode == 0, "built")
r = descry("calls", "-e", "@MAIN-__cxa_finalize", "./t", rc=0, env=dict(os.environ, LC_ALL="C"))
got = [re.sub(r" += ", " = ", line) for line in without_objects(r.err).splitlines()]
check(got[-1:] == ["+++ exited (status 0) +++"] and len(got) == len(WANT) + 1, "all calls", r)
for want, line in zip(WANT, got):
    check(re.fullmatch(want, line), "a call", want, line)

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../prototypes")
shipped = []
for file in os.listdir(SHIPPED):
    with open(os.path.join(SHIPPED, file)) as f:
        for line in f.read().splitlines() if file.endswith(".conf") and file != "syscalls.conf" else []:
            inner = None
            while line.endswith(");") and not line.startswith(";") and inner != line:
                inner, line = line, re.sub(r"\w+(\[\w+\])?\([^()]*\)(?!;$)", "T", line)
            shipped += re.findall(r"(\w+)\([^()]*\);$", line)
check(len(shipped) > 1000 and len(set(shipped)) == len(shipped), "a prototype twice", len(shipped), [n for n in set(shipped) if shipped.count(n) > 1])
if os.path.exists("/etc/ltrace.conf") and shutil.which("nm"):
    libc = re.search(r"=> (/\S*libc\.so\.6) ", sh("ldd ./t").stdout)
    defined = {line.split()[2].split("@")[0] for line in subprocess.run(["nm", "-D", libc[1]], stdout=subprocess.PIPE, text=True).stdout.splitlines()
               if len(line.split()) == 3 and line.split()[1] in "TWiV"} if libc else set()
    named = set(re.findall(r"^[^;\n]*?\s\*?(\w+) ?\(", open("/etc/ltrace.conf").read(), re.M))
    check(len(named & defined) > 200 and not (named & defined) - set(shipped), "ltrace's file names more", len(named), len(defined), sorted((named & defined) - set(shipped)))
else:
    print("note: no /etc/ltrace.conf or nm here")

# Files that import one another without end, each by many paths, and a FIFO.
os.makedirs("imports/a")
for i in range(400):
    with open("imports/n%d.conf" % i, "w") as f:
        f.write('import "n%d"\n' % (i + 1))
with open("imports/x.conf", "w") as f:
    f.write('import "./x"\nimport "a/../x"\nint made_by_import(int);\n')
r = descry("calls", "-F", "imports/n0.conf", "-c", "/bin/true", rc=2)
check("n17.conf is not imported" in r.err, "a chain", r)
descry("calls", "-F", "imports/x.conf", "-c", "/bin/true", rc=0)
os.mkfifo("imports/f.conf")
with open("imports/.ltrace.conf", "w") as f:
    f.write('import "f"\nimport "x"\nimport "n0"\n')
r = descry("calls", "-c", "/bin/true", env={"HOME": os.path.abspath("imports")}, rc=0)
check("f.conf is left out: no regular file" in r.err and "n16.conf is not imported" in r.err, "of a file that nobody named", r)
done()
