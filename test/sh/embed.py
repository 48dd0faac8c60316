#!/usr/bin/env python3
# The installed library: examples/embed.c and test/embed.c are built with nothing of this tree except the files that
# `meson install` installs, and trace real programs.
# serial
from live import *

if not shutil.which("pkg-config"):
    skip("pkg-config is not installed")
dest = os.path.join(TMP, "dest")
# --no-rebuild: the library is built by default, as descry is.
r = sh("DESTDIR=%s meson install -C %s --no-rebuild --quiet" % (dest, BUILD))
pc = [os.path.join(d, f) for d, _, files in os.walk(dest) for f in files if f == "descry.pc"]
if not check(r.returncode == 0 and len(pc) == 1, "meson install: %s %s" % (pc, r.stdout + r.stderr)):
    sys.exit(1)
PKG = "PKG_CONFIG_SYSROOT_DIR=%s PKG_CONFIG_PATH=%s pkg-config" % (dest, os.path.dirname(pc[0]))
VERSION = re.search(r"^\tversion: '([^']*)'", open("meson.build").read(), re.M).group(1)
check(sh(PKG + " --modversion descry").stdout.strip() == VERSION, "pkg-config's version")


def build(source, flags=""):
    exe = os.path.join(TMP, os.path.splitext(os.path.basename(source))[0] + re.sub(r"\W", "", flags))
    # From elsewhere, so that no header of the tree is found.
    r = sh("cd %s && cc -Wall -Wextra -Wno-unused-parameter -Werror -o %s %s $(%s %s --cflags --libs descry)" %
           (TMP, exe, os.path.abspath(source), PKG, flags))
    check(r.returncode == 0, "%s does not build %s: %s" % (source, flags, r.stderr[-2000:]))
    return exe if r.returncode == 0 else sys.exit(1)


def rows(text):
    return {name: int(n) for n, name in re.findall(r"^ *(\d+)  (\S+)$", text, re.M)}


# The example, linked in both ways, of a program whose calls are known.
inside = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if inside.rc:
    skip("no in-process engine: " + inside.err.strip())
for flags in "", "--static":
    exe = build("examples/embed.c", flags)
    r = sh("%s 'ls /etc' 2>&1" % exe)
    got = rows(r.stdout)
    check(r.returncode == 0 and got.get("libc.so.6`strdup", 0) > 0 and sum(got.values()) > 50, "the example says " + r.stdout)
want = descry("-q", "-x", "engine=inproc", "-n", "pid$target::malloc:entry { @[ufunc(ucaller)] = count(); }", c="ls /etc")
want = {m[0]: int(m[1]) for m in re.findall(r"^  (\S+) +(\d+)$", want.out, re.M)}
check({k: v for k, v in want.items() if "`" in k} == {k: v for k, v in got.items() if "`" in k}, "descry says %s, the example %s" % (want, got))
if shutil.which("setpriv"):
    os.chmod(TMP, 0o755)
    r = sh("setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --no-new-privs %s 'ls /etc' 2>&1" % exe)
    check(r.returncode == 0 and rows(r.stdout).get("libc.so.6`strdup", 0) > 0, "the example without privilege says " + r.stdout)
r = sh(exe + " /nonexistent/command 2>&1")
check(r.returncode == 1 and r.stdout.startswith("embed: descry: ") and "/nonexistent/command" in r.stdout, "no such command: " + r.stdout)

# The manual shows the same program.
page = open("man/descry.3").read().replace("\\e", "\\").replace("\\&", "")
text = open("examples/embed.c").read()
check(text[text.index("#include"):].strip().expandtabs(4) in page, "man/descry.3 shows another program than examples/embed.c")

WANT = """version 1
wrong set 0
wrong option -1
wrong poll -1
wrong message 1 'descry: descry_poll() is out of order here'
wrong compile -1
wrong start -1
gone pid -1
refused compile -1
values line 2 '42'
values line 0 ''
values line 14 'half printed 1'
values line 3 'end'
values row @s sum [3:a b, 2:-3=-3, 1:7=7] -5
values row @ quantize [1:q] 3 -1..-1:1 4..7:2
values run 0
values status 3
values again -1
values message 1 'descry: descry_stop() is out of order here'
printf dtrace:::BEGIN 3:a b 2:-3=-3 2:65=65 1
records line 10 '<a b -3 A>'
trace dtrace:::BEGIN 1:7=7 1
printf dtrace:::BEGIN 1
plain text
over 0
stop 0
rows 1
other 1
running 0 0"""


# All functions, by a program whose own names are those of functions inside the library; then the same with the sanitizers.
def all_functions(exe):
    r = sh(exe + " 2>&1", timeout=120)
    out = r.stdout
    check(r.returncode == 0 and out.endswith("done\n"), "the program ends with %s: %s" % (r.returncode, out))
    for line in WANT.split("\n"):
        check("\n" + line + "\n" in "\n" + out, "no line \"%s\" in\n%s" % (line, out))
    check(out.count("ended 1\n") == 2 and out.count("\nstart 0\n") == 2, "commands: " + out)
    check(re.search(r"^wrong message 1 '<.*>:1:\d+: error: .*nothing.*\[D_\w+\]'\n(wrong message 1 .*\n)+wrong compile", out, re.M), "wrong D: " + out)
    check(re.search(r"^wrong message 1 'descry: failed to set bufsiz: .*bufsize", out, re.M), "a wrong option: " + out)
    check(re.search(r"^refused message 1 'descry: .*[Dd]estructive", out, re.M) and "\nno\n" not in out, "destructive: " + out)
    check(re.search(r"^gone message 1 'descry: .*2147483632", out, re.M), "no such process: " + out)
    check(re.search(r"^plain text\n  key +1$", out, re.M), "without callbacks: " + out)
    check("row @p " not in out and out.index("@s sum [3:a b") < out.index("@s sum [1:b"), "rows: " + out)


all_functions(build("test/embed.c"))
all_functions(os.path.join(BUILD, "test", "embed_san"))
done()
