"""A program com.shop.Order in a JVM that runs: shared by the tests of probes in Java's methods."""
from jvms import java_homes
from live import *

JAVA_HOME = None


def java_compile(text, notes=True):
    """Compiles the program, or skips the test. Returns the JDK's folder. notes: of a JVM that has probes of its own."""
    global JAVA_HOME
    JAVA_HOME = java_homes()[0]
    if notes and "hotspot" not in sh("readelf -n %s/lib/server/libjvm.so" % JAVA_HOME).stdout:
        skip("the JVM of %s has no USDT probes" % JAVA_HOME)
    os.mkdir(TMP + "/classes")
    os.chmod(TMP, 0o755)
    with open(TMP + "/Order.java", "w", encoding="utf-8") as program:
        program.write(text)
    made = sh("%s/bin/javac --release 11 -encoding UTF-8 -d %s/classes %s/Order.java" % (JAVA_HOME, TMP, TMP))
    check(made.returncode == 0, "javac", made.stderr)
    return JAVA_HOME


class Java:
    def __init__(self, *options, **more):
        self.p = subprocess.Popen([JAVA_HOME + "/bin/java", "-Xmx128m", *options, "-cp", TMP + "/classes", "com.shop.Order"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, bufsize=1, **more)
        check(self.p.stdout.readline() == "ready\n", options, "is ready")
        self.pid = str(self.p.pid)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.p.kill()
        self.p.wait()
        if os.path.exists(self.socket()):
            os.unlink(self.socket())

    def socket(self):
        return "/tmp/.java_pid" + self.pid

    def do(self, what):
        self.p.stdin.write("%s\n" % what)
        self.p.stdin.flush()
        return check(self.p.stdout.readline() == "done\n", what, "is done")

    def flags(self):
        """Names of the flags that are true; asked of the JVM itself."""
        text = sh("%s/bin/jcmd %s VM.flags -all" % (JAVA_HOME, self.pid)).stdout
        found = dict(re.findall(r"\b(DTrace\w+Probes) += (true|false)\b", text))
        check(len(found) == 3, "flags", text[:500])
        return {k for k, v in found.items() if v == "true"}

    def ends(self, name):
        self.p.stdin.close()
        check(self.p.wait(timeout=60) == 0, name, "the program ends well", self.p.returncode)


def becomes(condition, secs=60):
    end = time.monotonic() + secs
    while True:
        result = condition()
        if result or time.monotonic() > end:
            return result
        time.sleep(0.1)


def left():
    return [f for f in os.listdir("/tmp") if f.startswith(".descry-") or f.startswith(".attach_pid")]


def end(s):
    s[1].send_signal(signal.SIGINT)
    return finish(s)


def compiled(java, method):
    # the third number is 0 for code that is in use
    return re.search(r"^ *\d+ +\d+ +0 com\.shop\.Order\.%s\(" % method, sh("%s/bin/jcmd %s Compiler.codelist" % (JAVA_HOME, java.pid)).stdout, re.M)
