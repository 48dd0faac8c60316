#!/usr/bin/env python3
# Chromium's renderer, which has seccomp filters of its own, traced from inside while it runs a page's script: the page is the same as
# untraced, and the renderer's calls are counted.
# serial
import http.server
import threading

from live import *

if not shutil.which("chromium"):
    skip("chromium is not installed")
if os.geteuid() == 0 and not shutil.which("setpriv"):
    skip("setpriv is not there: chromium has no sandbox as root")
if os.geteuid():
    skip("only root suspends a filter that is there before the attach")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
os.chmod(TMP, 0o777)
PAGE = b"""<html><body><script>let sum = 0, go = '';
while (go != 'go') {
  for (const end = performance.now() + 100; performance.now() < end;);
  const x = new XMLHttpRequest();
  x.open('GET', '/go', false);
  x.send();
  go = x.responseText;
}
for (let i = 0; i < 300000; i++) if (performance.now() > 0) sum += i % 7;
document.body.innerText = 'sum ' + sum</script></body></html>
"""
go = threading.Event()


class Pages(http.server.BaseHTTPRequestHandler):
    """The page, which keeps its renderer busy until a message lets it go on."""

    def do_GET(self):
        text = PAGE if self.path == "/" else b"go" if go.is_set() else b"wait"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
threading.Thread(target=server.serve_forever, daemon=True).start()
WANT = "sum %d" % sum(i % 7 for i in range(300000))
USER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def browse(name):
    go.clear()
    return subprocess.Popen(USER + ["chromium", "--headless", "--disable-gpu", "--user-data-dir=%s/%s" % (TMP, name), "--dump-dom", "--timeout=120000",
                                    "--disable-background-networking", "http://127.0.0.1:%d/" % server.server_port],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, HOME=TMP), start_new_session=True)


def end(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except OSError:
        pass


def descendants(pid):
    try:
        kids = [int(p) for t in os.listdir("/proc/%d/task" % pid) for p in open("/proc/%d/task/%s/children" % (pid, t)).read().split()]
    except OSError:
        return []
    return [q for p in kids for q in [p] + descendants(p)]


def cpu(pid):
    return sum(int(x) for x in open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[11:13])


def renderers(top):
    """Those of it that are filtered and run the page: the busiest last."""
    found = []
    for pid in descendants(top):
        try:
            if b"--type=renderer" in open("/proc/%d/cmdline" % pid, "rb").read() and re.search(r"^Seccomp:\s+2", open("/proc/%d/status" % pid).read(), re.M):
                found.append((cpu(pid), pid))
        except OSError:
            pass
    return sorted(found)


def busy_renderer(p):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and p.poll() is None:
        found = renderers(p.pid)
        if found and found[-1][0] > 50: # half a second
            return found[-1][1]
        time.sleep(0.05)
    return None


p = browse("untraced")
atexit.register(end, p)
pid = busy_renderer(p)
go.set()
o, e = p.communicate(timeout=120)
if p.returncode or WANT not in o:
    skip("chromium shows no page here, untraced: %s" % (e.strip().splitlines() or ["nothing is said"])[-1])
if not pid:
    skip("chromium's renderer is not found, or has no seccomp filter here")
WHOLE = o

D = "pid$target:libc.so.6:pthread_*:entry { @ = count(); @n[execname] = count(); @u[ustack(4)] = count(); @t[tid] = max(timestamp); }"
for options in (["-x", "engine=inproc"], []):
    p = browse("traced%d" % len(options))
    atexit.register(end, p)
    pid = busy_renderer(p)
    if not check(pid, "the renderer", p.poll()):
        continue
    out = TMP + "/out%d" % len(options)
    s = tracing("-q", "--json", "-x", "report", "-o", out, *options, "-n", D, "-p", str(pid), secs=60)
    go.set()
    o, e = p.communicate(timeout=120)
    r = finish(s, 60)
    r.out = open(out).read() if os.path.exists(out) else ""
    check((p.returncode, o) == (0, WHOLE), "the page", p.returncode, o[:1000], e[-1000:], r)
    check(r.rc == 0 and r.aggs().get((), 0) >= 200, "its threads' calls", r)
    # Chromium kills its renderer: each thread may end between two statements of a clause, and a statement that it did not come to
    # is one less
    calls, threads = r.aggs().get((), 0), len(r.aggs("t")) + 1
    short = {k: n for k, n in r.aggs("u").items() if len(json.loads(k)) < 2}
    by_stack, by_name = sum(r.aggs("u").values()), sum(r.aggs("n").values())
    check(calls - threads <= by_stack <= calls and not short, "stacks", short, by_stack, calls, r.err)
    check(calls - threads <= by_name <= calls, "by name", by_name, calls, r)
    check("no names" not in r.err, "its names are known", r.err)
    if options:
        check('"engine":"inproc"' in r.out, "from inside", r)
done()
