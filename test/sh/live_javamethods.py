#!/usr/bin/env python3
# Probes of methods and objects of a JVM that runs and was started without a flag, in both engines and with each collector: after the attach,
# exactly the calls that the program makes are counted, of methods that were compiled and inlined before, of classes that are loaded later,
# in several threads. live_javaargs.py has their arguments. After the end, also by SIGKILL, the JVM's flags are false again and its compiled code has no probes; a second attach
# works, and two at once do. Nothing is left in /tmp. A JVM that cannot be reached is refused with the reason.
# serial
# timeout: 600
import java_target
from java_target import *

import socket

PROGRAM = r"""
package com.shop;

import java.io.*;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

public class Order {
    static volatile int sink;
    static volatile Object kept;
    final int base = 3;

    static class Line {
        int v;
        Line(int v) { this.v = v; }
    }
    static class Later {
        static int first(int n) { return n + 1; }
        int second(int n) { return first(n) * 2; }
    }

    int add(int n) { return base + twice(n); }
    static int twice(int n) { return n * 2; }
    static int work(Order o, int n) {
        int s = 0;
        for (int i = 0; i < n; i++) {
            s += o.add(i);
            kept = new Line(i);
        }
        return s;
    }
    static int later(int n) {
        Later l = new Later();
        int s = 0;
        for (int i = 0; i < n; i++)
            s += l.second(i);
        return s;
    }
    static void run(int n, int threads) throws Exception {
        Order o = new Order();
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> sink += work(o, n));
            all[i].start();
        }
        for (Thread t : all)
            t.join();
    }
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int i = 0; i < 200; i++)
            sink += work(new Order(), 10000);
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("later"))
                sink += later(20000);
            else if (line.startsWith("/"))
                try (FileChannel f = FileChannel.open(Path.of(line))) {
                    kept = f.map(FileChannel.MapMode.READ_ONLY, 0, f.size());
                }
            else
                run(20000, Integer.parseInt(line));
            System.out.println("done");
        }
    }
}
"""
SERVER = r"""
#include <jni.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void quit(int s) { (void)s; _exit(9); }
int main(void)
{
	JavaVMOption option = { "-Djava.class.path=%s", 0 };
	JavaVMInitArgs args = { JNI_VERSION_1_8, 1, &option, 0 };
	JavaVM *vm;
	JNIEnv *env;

	if (JNI_CreateJavaVM(&vm, (void **)&env, &args) || !(*env)->FindClass(env, "com/shop/Order"))
		return 1;
	signal(SIGQUIT, quit);
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 2;
}
"""
CALLS, THREADS = 20000, 3
METHODS = """
java$target:com.shop.Order:add:entry, java$target:com.shop.Order:twice:entry { @e[probefunc] = count(); }
java$target:com.shop.Order:add:return, java$target:com.shop.Order:twice:return { @r[probefunc] = count(); }
java$target:*Later::entry { @l[probefunc] = count(); }
hotspot$target:::object-alloc /copyinstr(arg1, arg2) == "com/shop/Order$Line"/ { @o = count(); }
"""
AT_ENTRY = "pid$target:libjvm.so:*dtrace_method_entry*:entry { @ = count(); }"


def compare(r, name, calls, later=0):
    check(r.rc == 0 and "drop" not in r.err, name, "exit", r)
    wanted = {"add": calls, "twice": calls}
    check(r.aggs("e") == wanted, name, "entries", wanted, r)
    check(r.aggs("r") == wanted, name, "returns", wanted, r)
    check(r.aggs("o") == {(): calls}, name, "objects", calls, r)
    check(r.aggs("l") == ({"<init>": 1, "second": later, "first": later} if later else {}), name, "a class that is loaded later", r)


def has_no_probes(java, name):
    """The compiled code calls the JVM's function for the probe no more."""
    def quiet():
        s = tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", AT_ENTRY)
        java.do(1)
        return end(s).aggs() == {}
    return check(becomes(lambda: not java.flags()), name, "the flags are reset") and \
        check(becomes(quiet), name, "compiled code without probes is back")


def counted(option, engine):
    name = "%s, %s" % (option, engine)
    with Java(option) as java:
        s = tracing("--json", "-x", "engine=" + engine, "-p", java.pid, "-n", METHODS)
        check(java.flags() == {"DTraceMethodProbes", "DTraceAllocProbes"}, name, "the flags are set")
        java.do(THREADS)
        java.do("later")
        compare(end(s), name, CALLS * THREADS, CALLS)
        has_no_probes(java, name)
        # killed, and attached again
        s = tracing("--json", "-x", "engine=" + engine, "-p", java.pid, "-n", METHODS)
        java.do(1)
        s[1].kill()
        finish(s)
        has_no_probes(java, name + ", killed")
        s = tracing("--json", "-x", "engine=" + engine, "-p", java.pid, "-n", METHODS)
        java.do(2)
        compare(end(s), name + ", again", CALLS * 2)
        with open("/proc/%s/maps" % java.pid) as f:
            check(len(re.findall(r" r-xp .*/jvm-", f.read())) == 1, name, "the library is there once")
        java.ends(name)
        check(not left(), name, "left behind", left())


def two_at_once():
    with Java() as java:
        first = tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS)
        second = tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS)
        java.do(1)
        compare(end(first), "the first of two", CALLS)
        java.do(2)
        compare(end(second), "the second of two", CALLS * 3)
        has_no_probes(java, "two at once")


def monitors():
    """The kernel engine's probes of monitors need no flag either."""
    with Java() as java:
        s = tracing("-x", "engine=kernel", "-p", java.pid, "-n", "hotspot$target:::monitor-contended-enter { @ = count(); }")
        check(java.flags() == {"DTraceMonitorProbes"}, "the flag of monitors", java.flags())
        check(end(s).rc == 0 and becomes(lambda: not java.flags()), "the flag of monitors is reset")


def flag_lost(first, second):
    """Two tracers of different engines do not know of each other: the first one to end resets the flag, and the other one says so."""
    ticks = tempfile.mktemp(dir=TMP)
    with Java() as java:
        one = tracing("-q", "-x", "engine=" + first, "-p", java.pid, "-n", "hotspot$target:::monitor-wait { @ = count(); }")
        two = tracing("-q", "-x", "engine=" + second, "-p", java.pid, "-n",
                      'hotspot$target:::monitor-waited { @ = count(); } tick-100ms { system("echo >> %s"); }' % ticks)
        check(becomes(lambda: os.path.exists(ticks) and os.path.getsize(ticks) > 1), first, second, "the second looks at the flag")
        r = end(one)
        check(r.rc == 0 and not r.err, first, second, "the first says nothing", r)
        check(becomes(lambda: not java.flags()), "the flag is reset")
        r = end(two)
        check(r.rc == 0 and "another tracer has reset the flag by which process %s passes the probes of monitors" % java.pid in r.err,
              first, second, "the second says it", r)
        check(becomes(lambda: not java.flags()), first, second, "no flag stays true")


def two_copies():
    """Another user takes the folder's name, so that the JVM loads a second copy of the library for the second tracer."""
    ticks = tempfile.mktemp(dir=TMP)
    with Java() as java:
        one = tracing("-q", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS)
        with open("/proc/%s/maps" % java.pid) as f:
            folder = re.search(r"\S*/\.descry-[0-9a-f]{16}(?=/)", f.read()).group()
        os.mkdir(folder)
        two = tracing("-q", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS + 'tick-100ms { system("echo >> %s"); }' % ticks)
        check(becomes(lambda: os.path.exists(ticks) and os.path.getsize(ticks) > 1), "the second looks at the flags")
        java.do(1)
        end(one)
        check(becomes(lambda: not java.flags()), "the flags are reset")
        r = end(two)
        check("another tracer has reset the flag by which process %s passes the probes of methods" % java.pid in r.err, "two copies", r)
        has_no_probes(java, "two copies")
        os.rmdir(folder)


def refused(options, text, **more):
    with Java(*options) as java:
        r = descry("-n", "java$target:com.shop.Order:add:entry { @ = count(); }", "-p", java.pid, rc=1, **more)
        check(text in r.err and not left(), options, r, left())
        java.do(1)


def listens():
    """A JVM with -Xrs does not handle SIGQUIT, but listens from its start."""
    with Java("-Xrs") as java:
        s = tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS)
        java.do(1)
        compare(end(s), "-Xrs", CALLS)


def embedded():
    """A server with a JVM in it handles SIGQUIT itself: it is not sent one."""
    home = java_target.JAVA_HOME
    include = home + "/include"
    if not os.path.exists(include + "/jni.h") or not shutil.which("cc"):
        print("note: no jni.h or no C compiler: a server with a JVM in it is not tried")
        return
    with open(TMP + "/server.c", "w") as f:
        f.write(SERVER % (TMP + "/classes"))
    made = sh("cc -I%s -I%s/linux -o %s/server %s/server.c -L%s/lib/server -ljvm -Wl,-rpath,%s/lib/server"
              % (include, include, TMP, TMP, home, home))
    check(made.returncode == 0, "cc", made.stderr)
    with subprocess.Popen([TMP + "/server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        check(server.stdout.readline() == "ready\n", "the server is ready")
        r = descry("-n", "java$target:com.shop.Order:twice:entry { @ = count(); }", "-p", str(server.pid), rc=1)
        check("the program handles SIGQUIT itself" in r.err and not left(), "a server", r, left())
        server.stdin.close()
        check(server.wait(60) == 0, "the server ends as it would", server.returncode)


def impostor():
    """Another process listens where the JVM would."""
    with Java() as java, socket.socket(socket.AF_UNIX) as s:
        path = java.socket()
        s.bind(path)
        s.listen()
        r = descry("-n", "java$target:com.shop.Order:add:entry { @ = count(); }", "-p", java.pid, rc=1)
        check("another process listens at its attach socket" in r.err and not left(), "impostor", r, left())
        os.unlink(path)
        s.setblocking(False)
        other = s.accept()[0]
        check(other.recv(100) == b"", "nothing is sent to it")
        other.close()


def made_up():
    """A file that the JVM only maps has a path like the library's, and somebody puts another library there: the JVM does not load it."""
    with Java() as java:
        end(tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS))
        with open("/proc/%s/maps" % java.pid) as f:
            name = re.search(r"/(jvm-[0-9a-f]+\.so) ", f.read()).group(1)
    folder = TMP + "/.descry-" + 16 * "1"
    os.mkdir(folder)
    path, loaded = os.path.join(folder, name), TMP + "/loaded"
    with open(path, "w") as f:
        f.write("x")
    with open(TMP + "/other.c", "w") as f:
        f.write('#include <fcntl.h>\n__attribute__((constructor)) static void run(void) { creat("%s", 0600); }\n' % loaded)
    with Java() as java:
        java.do(path)
        os.unlink(path)
        with open("/proc/%s/maps" % java.pid) as f:
            check(path + " (deleted)" in f.read(), "the file is mapped")
        check(sh("cc -shared -fPIC -o %s %s/other.c" % (path, TMP)).returncode == 0, "cc")
        s = tracing("--json", "-x", "engine=kernel", "-p", java.pid, "-n", METHODS)
        java.do(1)
        compare(end(s), "a made up path", CALLS)
        check(not os.path.exists(loaded) and not left(), "the JVM loads what another user has put there", left())
    shutil.rmtree(folder)


def interrupted():
    """A JVM that does not answer: ^C ends the wait."""
    with Java() as java:
        java.p.send_signal(signal.SIGSTOP)
        s = start("-x", "engine=kernel", "-n", "java$target:com.shop.Order:add:entry { @ = count(); }", "-p", java.pid)
        check(becomes(lambda: ".attach_pid" + java.pid in left()), "it waits", left())
        r = end(s)
        check(r.rc == 1 and "cannot be told to pass the probes of methods" in r.err and not left(), "interrupted", r, left())


def other_user():
    if os.geteuid() or not shutil.which("setpriv"):
        return
    for_anybody()
    with Java(preexec_fn=lambda: (os.setgroups([]), os.setgid(65534), os.setuid(65534))) as java:
        if os.path.exists(java.socket()):  # of an older JVM with this number that was killed
            os.unlink(java.socket())
        with open(java.socket(), "w"):
            r = descry("-n", "java$target:com.shop.Order:add:entry { @ = count(); }", "-p", java.pid, rc=1)
            check("where it would listen, is another user's file" in r.err and not left(), "a file in the way", r, left())
        os.unlink(java.socket())
        s = tracing("--json", "-p", java.pid, "-n", METHODS)
        java.do(1)
        compare(end(s), "another user's JVM", CALLS)
        has_no_probes(java, "another user's JVM")
        own = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
        p = subprocess.Popen(own + [DESCRY, "--json", "-x", "engine=inproc", "-p", java.pid, "-n", METHODS + 'BEGIN { printf("on"); }'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begun = p.stdout.readline()
        java.do(2)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        compare(Run(own, p.returncode, (begun + out).decode(), err.decode(), 0), "the user's own JVM", CALLS * 2)
        check(not left(), "left behind", left())


def said():
    with Java() as java:
        r = descry("-l", "-v", "-n", "java$target:com.shop.Order:add:entry", "-p", java.pid)
        check("sets its flag DTraceMethodProbes" in r.out and "fires only" not in r.out, "listing", r)


java_compile(PROGRAM)
for number, collector in enumerate(("-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseZGC", "-XX:TieredStopAtLevel=1", "-Xint")):
    for each in ("inproc", "kernel") if number == 0 else ("inproc", "kernel")[number % 2:number % 2 + 1]:
        counted(collector, each)
two_at_once()
monitors()
flag_lost("inproc", "kernel")
flag_lost("kernel", "inproc")
two_copies()
refused(["-XX:+DisableAttachMechanism"], "was started with -XX:+DisableAttachMechanism")
listens()
embedded()
impostor()
made_up()
interrupted()
said()
other_user()
done()
