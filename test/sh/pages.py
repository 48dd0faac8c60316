"""The commands of the pages for users, played as a reader would: found in Markdown and manual pages, run in a folder of their own, and
compared with what the page shows. A `#` before a command means root, a `$` an ordinary user."""
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
SECS_UNTIL_INTERRUPT = 3
SECS_AT_MOST = 60


class Command:
    """prompt: "#", "$" or "" where the page has none. shown: the lines that the page has below it. claims: the names in backquotes of
    the paragraph below that, which the output must have."""

    def __init__(self, page, prompt, text):
        self.page, self.prompt, self.text, self.shown, self.claims = page, prompt, text, [], []

    def endless(self):
        """Does it go on until ^C?"""
        return not re.search(r"exit\(|\s(-[cehGlSV]|-t|--help|--version)\b|descry (help|list|check)\b", self.text)

    def __str__(self):
        return "%s: %s" % (self.page, self.text)


def whole(text):
    """Is the command complete: no quote open, no backslash at its end?"""
    if text.endswith("\\"):
        return False
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True


def commands(page, program=r"(?:\w+ )*descry"):
    """The commands in the indented blocks of a Markdown page."""
    found, last, below = [], None, False
    for line in open(page, encoding="utf-8"):
        code = re.match(r"^ {4,}(?:([#$]) )?(%s\b.*)$" % program, line)
        text = line.rstrip("\n")
        if last and not whole(last.text):
            last.text += "\n" + text.strip()
        elif code and not (last and last.shown and not code[1] and not below):
            last, below = Command(page, code[1] or "", code[2]), False
            found.append(last)
        elif last and text.startswith("    ") and not below:
            last.shown.append(text[4:])
        elif last and text.strip():
            if not text.startswith(" "):
                below = True
            if below:
                last.claims += re.findall(r"`([^`]+)`", text)
        elif last and below:
            last = None  # the paragraph has ended
        elif last and not below:
            last.shown += [""] if last.shown else []
    for c in found:
        while c.shown and not c.shown[-1]:
            c.shown.pop()
    return found


ROFF = {"\\(dq": '"', "\\e": "\\", "\\&": "", "\\-": "-"}


def roff(text):
    return re.sub(r"\\(?:\(..|.)", lambda m: ROFF.get(m.group(), m.group()), text)


def manual(page):
    """(commands, D programs) of a manual page in mdoc(7): what stands in displays and in lists of commands."""
    found, programs, block, inside = [], [], [], None
    for line in open(page, encoding="utf-8").read().splitlines():
        words = re.match(r"\.(Dl|It Li) (.*)", line)
        if words:
            code = re.match(r"(?:([#$]) )?((?:ssh \w+ )?descry .*)", roff(words[2]))
            if code:
                found.append(Command(page, code[1] or "", code[2]))
            elif words[1] == "Dl" and inside and found:
                found[-1].shown.append(roff(words[2]))
            inside = words[1] == "Dl" and (code or inside)
        elif line.startswith(".Bd -literal"):
            block = []
        elif line == ".Ed":
            displayed(page, "\n".join(roff(each) for each in block), found, programs)
        else:
            block.append(line)
            inside = None
    return found, programs


def displayed(page, text, found, programs):
    """A display is a D program or, when it begins with a program that is installed, a row of commands."""
    if not re.match(r"(descry|perf|awk) ", text):
        programs.append(text)
        return
    part = ""
    for line in text.splitlines():
        part += ("\n" if part else "") + line
        if whole(part) and not part.endswith("|"):
            found.append(Command(page, "", part))
            part = ""


class Player:
    """A folder with descry in its path, the examples, and what else the commands want. names: variables of the commands."""

    def __init__(self, descry, names=None, *files):
        self.descry, self.names, self.files = descry, names or {}, files

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="descry-pages-", dir="/var/tmp")  # where a file lies on a disk
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir + "/bin")
        shutil.copy(self.descry, self.dir + "/bin/descry")
        shutil.copytree("examples", self.dir + "/examples")
        for f in self.files:
            shutil.copy(f, self.dir)
        os.mkdir(self.dir + "/tmp")
        os.chmod(self.dir + "/tmp", 0o777)
        path = "%s/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin" % self.dir
        self.env = dict(os.environ, PATH=path, LC_ALL="C", PYTHONDONTWRITEBYTECODE="1", **self.names)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, True)

    def play(self, command, before=(), secs=SECS_UNTIL_INTERRUPT):
        """Runs it to its end or, when it has none, for some seconds and until one ^C."""
        r = self.run(command, before, secs)
        while r.returncode == -signal.SIGINT and secs < SECS_AT_MOST:  # on a busy machine it had not begun to trace by then
            secs *= 3
            r = self.run(command, before, secs)
        return r

    def run(self, command, before, secs):
        argv = [*before, "bash", "-c", re.sub(r"(?<!\w)(/var)?/tmp/", self.dir + "/tmp/", command.text)]
        waits = [(None, SECS_AT_MOST), (signal.SIGKILL, None)]
        if command.endless():
            waits = [(None, secs), (signal.SIGINT, SECS_AT_MOST), (signal.SIGKILL, None)]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env=self.env, cwd=self.dir, start_new_session=True) as p:
            for sig, timeout in waits:
                if sig:
                    os.killpg(p.pid, sig)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = p.communicate(timeout=timeout)
                    break
        return subprocess.CompletedProcess(argv, p.returncode, out, err)


def failed(r):
    """Did descry refuse, or end badly?"""
    return r.returncode or re.search(r"error:|rejects|not available|does not match", r.stderr)


def told(r):
    """Returns true when the output names the missing privilege."""
    return r.returncode and re.search(r"CAP_|root|ermission|ermitted", r.stderr)


def shape(line):
    """A line without what changes from run to run: a bar is gone, names are W, numbers are N."""
    line = re.sub(r"\|@* *", "|", line.strip())
    line = re.sub(r"(/[\w.+-]*)+|(?<![\w.])[A-Za-z_][\w.+-]*", "W", line)
    return re.sub(r"\s+", " ", re.sub(r"0x[0-9a-f]+|\d+(\.\d+)*", "N", line))


def differences(command, output, exact=False):
    """The lines that the page shows and that did not come. A line without a number, or each line where output is `exact`, comes as it
    stands, others by their shape."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    shapes = {shape(line) for line in lines}
    shown = [" ".join(line.split()) for line in command.shown if line.strip() not in ("", "...")]
    return [s for s in shown if (shape(s) not in shapes if re.search(r"\d", s) and not exact else s not in lines)]
