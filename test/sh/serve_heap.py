#!/usr/bin/env python3
# descry serve --allow-heap: the page reads the heap of the served process, a C program's and Python's, while that is traced; nobody can without
# the option, the token, or the page's header; a page in Chromium shows it.
import shutil
import time

from served import *

PROGRAM = ("-q", "-n", "tick-1s { @[execname] = count(); }")


def poll(s):
    for _ in range(600):
        r, text = s.ask("/%s/heap" % s.token)
        if r.status == 200:
            return text
        check(r.status == 202, "while it is read", r.status, text)
        time.sleep(0.1)
    return "it is read for ever"


def end(s):
    s.process.send_signal(signal.SIGTERM)
    check(s.process.wait(60) is not None, "the end")


def traced(*argv):
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(p.kill)
    check(p.stdout.readline() == "ready\n", argv[0], "did not start")
    return p


python = traced("/usr/bin/python3", "-c", "class Kept: pass\nkeep = [Kept() for i in range(54321)]\nprint('ready', flush=True); input()")
s = Served("--allow-heap", "-p", str(python.pid), *PROGRAM)
r, text = s.ask("/%s/heap" % s.token)
check(r.status == 200 and text == "", "before the first", r.status, text)
r, text = s.ask("/%s/heap" % s.token, "POST")
check(r.status == 403 and "not from the page" in text, "a POST of another page", r.status, text)
r, text = s.ask("/%s/heap" % ("0" * 32), "POST", X_Descry="1")
check(r.status == 403, "without the token", r.status, text)
r, text = s.ask("/%s/heap" % s.token, "PUT", X_Descry="1")
check(r.status == 405, "another method", r.status, text)
for _ in range(2):
    r, text = s.ask("/%s/heap" % s.token, "POST", X_Descry="1")
    check(r.status == 200, "from the page", r.status, text)
    text = poll(s)
    check("reachable from" in text and "leak suspects" in text and "Python" in text, "the summary", text[:2000])
check(python.poll() is None, "the program goes on")
if shutil.which("chromium"):
    from browser import Browser
    b = Browser()
    b.open(s.url)
    check(b.until("!document.getElementById('heapbox').hidden"), "the panel")
    b.eval("document.getElementById('readheap').click()")
    check(b.until("document.getElementById('heaptext').textContent.indexOf('leak suspects') > 0 && !document.getElementById('readheap').disabled", 90),
          "the panel's text", b.eval("document.getElementById('heaptext').textContent"), b.eval("document.getElementById('heapnote').textContent"))
    b.close()
# it ends in the middle of a reading
s.ask("/%s/heap" % s.token, "POST", X_Descry="1")
end(s)
python.kill()
python.wait()

# The server goes on when the process has ended. Another process that gets the number is not read, nor traced by a program of the page.
LAST_PID = "/proc/sys/kernel/ns_last_pid"
if os.access(LAST_PID, os.W_OK):
    first = subprocess.Popen(["/bin/sleep", "600"])
    s = Served("--allow-heap", "--allow-d", "-p", str(first.pid), "-q", "-n", "BEGIN { }")
    time.sleep(0.05)  # the kernel tells when a process began in hundredths of a second
    first.kill()
    first.wait()
    other = 0
    for _ in range(1000):
        with open(LAST_PID, "w") as f:
            f.write(str(first.pid - 1))
        other = os.fork()
        if not other:
            if os.getpid() == first.pid:
                os.execvp("python3", ["python3", "-c", "import time; secret = ['x'] * 54321; time.sleep(600)"])
            os._exit(0)
        if other == first.pid:
            break
        os.waitpid(other, 0)
    if other == first.pid:
        atexit.register(os.kill, other, signal.SIGKILL)
        r, text = s.ask("/%s/heap" % s.token, "POST", X_Descry="1")
        text = poll(s) if r.status == 200 else text
        check(text == "process %d has ended\n" % first.pid, "the heap of another process", text)
        end(s)
    else:
        print("note: the process number was taken")
else:
    print("note: needs to write " + LAST_PID)

sleeper = subprocess.Popen(["/bin/sleep", "600"])
atexit.register(sleeper.kill)
s = Served("-p", str(sleeper.pid), *PROGRAM)
for method in "GET", "POST":
    r, text = s.ask("/%s/heap" % s.token, method, X_Descry="1")
    check(r.status == 403 and "--allow-heap" in text, "not allowed", r.status, text)
end(s)
r = subprocess.run([DESCRY, "serve", "--allow-heap", "-n", "tick-1s { }"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(r.returncode == 2 and "-p PID" in r.stderr, "no process", r.returncode, r.stderr)
done()
