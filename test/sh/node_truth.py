"""Shared by the tests that compare with what V8 says of its threads: the programs of real_node.py with their addon, and descry beside them."""
from live import *
from node_code import *
import real_node


def build():
    if not shutil.which("cc"):
        skip("no C compiler")
    with open(TMP + "/truth.c", "w") as f:
        f.write(real_node.ADDON)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", TMP + "/truth.node", TMP + "/truth.c", "-ldl"], check=True)
    for name, (text, _) in real_node.PROGRAMS.items():
        with open(TMP + "/%s.js" % name, "w", encoding="utf-8") as f:
            f.write(text)


def npm_of(node):
    """The folder of npm, if this machine has it."""
    near = os.path.dirname(os.path.dirname(os.path.realpath(node)))
    for root in (near + "/lib/node_modules/npm", "/usr/lib/node_modules/npm", "/usr/share/nodejs/npm"):
        if os.path.exists(root + "/package.json"):
            return root
    return None


def named(block):
    """The frames of JavaScript; one whose name could not be read any more is None."""
    return [f for line in block.splitlines() for f in ([None] if line.strip() == "[javascript]" else frames_of(line + "\n"))]


class Said:
    """A program that runs, with the addon. Its file has what V8 says."""

    def __init__(self, node, flags, program, count, **env):
        options = real_node.PROGRAMS[program][1]
        self.file, self.go = TMP + "/said", TMP + "/go"
        for path in (self.file, self.go):
            if os.path.exists(path):
                os.unlink(path)
        env = dict(os.environ, TRUTH=TMP + "/truth.node", TRUTH_FILE=self.file, TRUTH_GO=self.go, TRUTH_COUNT=str(count), **env)
        self.p = subprocess.Popen([node, *flags, *options, "%s/%s.js" % (TMP, program), npm_of(node) or ""], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env)
        check(self.p.stdout.readline() == b"ready\n", node, flags, program, "is ready")

    def begin(self):
        with open(self.go, "w"):
            pass

    def pause(self):
        os.unlink(self.go)

    def text(self):
        with open(self.file, encoding="utf-8") as f:
            return f.read()

    def end(self):
        self.p.kill()
        self.p.wait()


def wait_for(condition, program, what, secs=300):
    deadline = time.monotonic() + secs
    while not condition():
        if program.p.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("FAILED: not in time, or the program has ended: " + what)
        time.sleep(0.005)


def begin_traced(said, *args):
    """Begins descry, and then the questions to V8. BEGIN prints a line when the probes are there."""
    out = TMP + "/out"
    if os.path.exists(out):
        os.unlink(out)
    started = start("-q", "-p", str(said.p.pid), "-o", out, "-n", 'BEGIN { printf("begun\\n"); }', *args)

    def begun():
        if started[1].poll() is not None:
            raise SystemExit("FAILED: descry has ended\n%s" % finish(started))
        return os.path.exists(out) and os.path.getsize(out)
    wait_for(begun, said, "the probes are there")
    said.begin()
    return started


def end_traced(said, started):
    """Returns what descry has printed. It ends at truth_end()."""
    r = finish(started, 600)
    check(r.rc == 0, "exit", r)
    with open(TMP + "/out", encoding="utf-8") as f:
        return f.read()
