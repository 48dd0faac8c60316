"""The versions of interpreters that tools/install-runtimes has got, and programs that run on them and answer questions. A test of a
language gives one function, which is called for each version, two versions at once."""
import threading
from concurrent.futures import ThreadPoolExecutor

from live import *

RUNTIMES = os.path.join(BUILD, "runtimes", "bin")
EXPECTED = {"python": ("2.7", "3.9", "3.13", "3.14"), "ruby": ("2.7", "3.3"), "java": ("11", "21", "25")}

# Versions that no release of Debian has.
ABSENT = {"ruby": ("3.2", "3.4")}


class Program:
    """A program in a version of its language. It prints "ready", and then answers each line that it reads with one line."""

    def __init__(self, name, *args, **more):
        self.name = name
        self.p = kill_at_end(subprocess.Popen([os.path.join(RUNTIMES, name), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more))
        self.pid = str(self.p.pid)
        self.check(self.p.stdout.readline() == "ready\n", "the program is ready")

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def tell(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n")
        self.p.stdin.flush()

    def answer(self):
        return json.loads(self.p.stdout.readline())

    def check(self, good, *what):
        return check(good, self.name + ":", *what)

    def stacks(self):
        """What `descry stack` shows: {number of a thread: [lines]}."""
        r = descry("stack", "-p", self.pid)
        found = re.findall(r"^  thread (\d+)[^\n]*\n((?:    .*\n?)*)", r.out, re.M)
        return {int(tid): [line.strip() for line in rest.splitlines()] for tid, rest in found}

    def traced(self, engine, program, *words):
        """Asks while the D program traces it; returns the answer and what was counted."""
        d = tracing("-q", "--json", "-x", "engine=" + engine, "-p", self.pid, "-n", program)
        if not self.check(d[1].poll() is None, engine, "the tracing began", "" if d[1].poll() is None else finish(d)):
            return None, None
        said = self.ask(*words)
        # system(3), by which tracing() sees the beginning, ignores SIGINT until its command has ended
        while descendants(d[1].pid):
            time.sleep(0.01)
        d[1].send_signal(signal.SIGINT)
        r = finish(d)
        self.check(r.rc == 0, engine, "the tracing ended", r)
        return said, r

    def sampled(self, engine, most, action="ustack()"):
        """Stacks of a program that is busy, each as a list of lines."""
        r = descry("-q", "-x", "engine=" + engine, "-x", "aggsize=16m", "-p", self.pid, "-n",
                   "profile-997 /pid == $target/ { @[%s] = count(); n++; } profile-997 /n >= %d/ { exit(0); } tick-60s { exit(0); }" % (action, most))
        self.check(r.rc == 0 and not r.err, engine, "samples", r)
        return [([line.strip() for line in m.group(1).splitlines()], int(m.group(2)))
                for m in re.finditer(r"((?:^ +\S.*\n)+?)^ +(\d+)$", r.out, re.M)]

    def heap(self, *args):
        r = descry("heap", "--json", "-n", "10000000", "-p", self.pid, *args)
        return r.json()

    def recorded(self, line, name):
        """heap alloc: asks for 1,000 objects of the class `name`, which are made in this line."""
        d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--json", "-n", "100000", "-p", self.pid], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True))
        said = d.stderr.readline()
        if not self.check(said == "descry heap: recording\n", "heap alloc:", said):
            return
        self.ask("make", 1000)
        d.send_signal(signal.SIGINT)
        rows = [json.loads(row) for row in d.communicate()[0].splitlines()]
        found = {(r.get("line"), r["class"]): r["count"] for r in rows[1:]}
        self.check(found.get((line, name)) == 1000, "heap alloc", rows[:1], {k: v for k, v in found.items() if k[1] == name})


def file_of(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(TMP, 0o755)
    return path


def each_version(language, test):
    """Calls test(name) for each version; names those that are missing."""
    names = [language + v for v in os.environ.get("VERSIONS", " ".join(EXPECTED[language])).split()]
    here = [n for n in names if os.path.exists(os.path.join(RUNTIMES, n))]
    for n in sorted(set(names) - set(here)):
        print("not seen: %s (tools/install-runtimes gets it)" % n)
    for v in ABSENT.get(language, ()):
        print("not seen: %s%s (no release of Debian has it)" % (language, v))
    if not here:
        skip("tools/install-runtimes has got no version of " + language)
    with ThreadPoolExecutor(2) as pool:
        for name, error in zip(here, pool.map(lambda n: outcome(test, n), here)):
            check(error is None, name, error)
    done()


def outcome(test, name):
    try:
        test(name)
    except Exception:
        import traceback
        return traceback.format_exc()
