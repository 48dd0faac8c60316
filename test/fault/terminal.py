#!/usr/bin/env python3
# Names from outside cannot act on the terminal that descry writes to: escapes, C1 controls, text that turns its direction and bytes
# that are no UTF-8 are shown escaped there. Pipes get every byte, and the D program's own literal text works.
import pty
import termios

from live import *

INTERP = ["-x", "engine=interp"]
HOSTILE = b"\x1b]0;gone\x07\xc2\x9b2J\xe2\x80\xae\xff\rx"
SHOWN = b"\\033]0;gone\\007\\302\\2332J\\342\\200\\256\\377\\015x"
D_TEXT = "".join("\\%03o" % c for c in HOSTILE)


def terminal(*args):
    """What a command writes to a terminal, and its exit code."""
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    p = subprocess.Popen([DESCRY] + list(args), stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(master)
    return p.wait(), out


def piped(*args):
    r = subprocess.run([DESCRY] + list(args), stdin=subprocess.DEVNULL, capture_output=True)
    return r.returncode, r.stdout + r.stderr


def both(what, args, rc, raw=HOSTILE):
    """Escaped on a terminal, as it is in a pipe."""
    got = terminal(*args)
    check(got[0] == rc and SHOWN in got[1] and HOSTILE not in got[1], what, "on a terminal", got)
    got = piped(*args)
    check(got[0] == rc and (raw is None or raw in got[1]), what, "in a pipe", got)


both("%s", INTERP + ["-qn", 'BEGIN { printf("%%s\\n", "%s"); exit(0); }' % D_TEXT], 0)
both("trace()", INTERP + ["-qn", 'BEGIN { trace("%s"); exit(0); }' % D_TEXT], 0)
both("a key", INTERP + ["-qn", 'BEGIN { @["%s"] = count(); exit(0); }' % D_TEXT], 0)
both("a file's name", ["-s", b"/nonexistent/" + HOSTILE], 1)
both("a process id", ["-p", HOSTILE, "-n", "BEGIN { }"], 2)
both("an option", ["-x", b"strsize=" + HOSTILE, "-n", "BEGIN { }"], 1)
both("descry heat", ["heat", b"/nonexistent/" + HOSTILE], 1)
both("descry flame", ["flame", b"/nonexistent/" + HOSTILE], 1)

# no name of a file makes a line of its own
LINES = b"/nonexistent/x\ndescry: all is well"
for args in ["-s", LINES], ["heat", LINES], ["flame", LINES], ["heap", LINES], ["malloc", "report", LINES], ["stack", LINES]:
    rc, out = terminal(*args)
    check(rc in (1, 2) and out.count(b"\n") <= 1 and b"\\012descry" in out, "lines in a name", args, rc, out)
for command, text in ("heat", b"1 5\nno event\n"), ("flame", b"a;b 1\na;c 2\nno stack\n"):
    path = TMP.encode() + b"/skipped\ndescry: all is well"
    open(path, "wb").write(text)
    r = subprocess.run([DESCRY, command, "-o", TMP + "/skipped.svg", path], stdin=subprocess.DEVNULL, capture_output=True)
    check(r.returncode == 0 and r.stderr.count(b"\n") == 1 and b" 1 of " in r.stderr, "lines in the name of what is read", command, r)
lines = TMP.encode() + b"/x\ny.d"
open(lines, "wb").write(b"BEGIN { nosuch; }\n")
rc, out = terminal("-e", "-s", lines)
check(rc == 1 and b"/x?y.d:1:" in out, "lines in a script's name", rc, out)

# the program's own literal text
rc, out = terminal(*INTERP, "-qn", 'BEGIN { printf("\\033[1m%s\\033[0m|\\303\\251\\n", "\\033[5m"); exit(0); }')
check(rc == 0 and b"\x1b[1m\\033[5m\x1b[0m|\xc3\xa9\n" in out, "a literal of the program", rc, out)

# D source lines: the quoted line holds nothing that acts, wherever it goes; colours are ours, and only on a terminal
open(TMP + "/bad.d", "wb").write(b'BEGIN { trace("' + HOSTILE + b'\xc3\xa9"); nosuch; }\n')
for where in terminal, piped:
    rc, out = where("-e", "-s", TMP + "/bad.d")
    check(rc == 1 and b"]0;gone" in out and HOSTILE not in out and b"\x1b]" not in out and b"\xff" not in out and b"\xc3\xa9" in out and
          (b"\x1b[" in out) == (where == terminal), "a source line", where.__name__, rc, out)

# JSON escapes by itself
for where in terminal, piped:
    rc, out = where("--json", *INTERP, "-n", 'BEGIN { @["%s"] = count(); exit(0); }' % D_TEXT)
    line = json.loads(out.splitlines()[0])
    check(rc == 0 and line["keys"] == ["\x1b]0;gone\x07\x9b2J\u202e\\xff\rx"] and not any(c in out for c in (b"\x1b", b"\xc2\x9b", b"\xe2\x80\xae")),
          "JSON", where.__name__, rc, out)

# a picture for a terminal: its colours act, the names in it do not
open(TMP + "/events", "wb").write(b"1 5 a" + HOSTILE.replace(b"\r", b"") + b"\n2 7 b\n")
rc, out = terminal("heat", "-q", TMP + "/events")
check(rc == 0 and b"\x1b[48;5;" in out and b"\x1b]" not in out and b"\xc2\x9b" not in out and b"\xff" not in out, "descry heat", rc, out)
done()
