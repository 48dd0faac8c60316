"""What doc/first-hour.md asks its questions about: nginx, PostgreSQL and a Python program, each with something to do, as an ordinary
user in a directory of their own. `with Servers() as s:` runs them; s.names has the variables that the page's commands use."""
import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
PYTHON = "/usr/bin/python3"
CLIENTS = 4  # of PostgreSQL


def tool(name, *folders):
    """Where a program is: in one of the folders, or in the path."""
    for folder in folders:
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return shutil.which(name)


def postgres_folder():
    root = "/usr/lib/postgresql"
    versions = sorted(os.listdir(root)) if os.path.isdir(root) else []
    return os.path.join(root, versions[-1], "bin") if versions else "/nonexistent"


def missing():
    """The programs that are not installed."""
    need = [("nginx", "/usr/sbin"), ("initdb", postgres_folder()), ("postgres", postgres_folder()), ("pgbench", postgres_folder())]
    return [name for name, folder in need if not tool(name, folder)] + ([] if os.path.exists(PYTHON) else ["python3"])


def wait_for(what, ready, secs=30):
    end = time.monotonic() + secs
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > end:
            raise RuntimeError("waited %d s in vain for %s" % (secs, what))
        time.sleep(0.05)


def children(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(child) for child in f.read().split()]
    return []


def command_line(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    return ""


class Servers:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="descry-first-hour-", dir="/var/tmp")
        self.running, self.threads, self.stop, self.names = [], [], threading.Event(), {}
        self.env = dict(os.environ, LC_ALL="C", PYTHONDONTWRITEBYTECODE="1")
        try:
            os.chown(self.dir, NOBODY, NOBODY)
            os.chmod(self.dir, 0o755)
            for name in "shop.py", "prices.py", "orders.sql":
                shutil.copy(os.path.join(HERE, name), self.dir)
            self.names["SHOP"] = str(self.start(PYTHON, "shop.py").pid)
            self.names["WORKER"] = str(self.nginx())
            self.names["BACKEND"] = str(self.postgres())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop.set()
        for p, sig in reversed(self.running):
            if p.poll() is None:
                p.send_signal(sig)
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        for t in self.threads:
            t.join()
        shutil.rmtree(self.dir, True)

    def argv(self, *words):
        return (AS_NOBODY if os.geteuid() == 0 else []) + list(words)

    def start(self, *words, ends_by=signal.SIGTERM):
        with open(self.dir + "/log", "ab") as log:
            p = subprocess.Popen(self.argv(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir, env=self.env,
                                 start_new_session=True)
        self.running.append((p, ends_by))
        return p

    def once(self, *words):
        subprocess.run(self.argv(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.dir,
                       env=self.env, check=True)

    def nginx(self):
        """Pages of text for two clients that ask without a pause."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        os.mkdir(self.dir + "/pages", 0o755)
        with open(self.dir + "/pages/catalogue.txt", "w") as f:
            f.writelines("%d: article %d, %d in stock\n" % (n, n * n % 99991, n * 7919 % 1009) for n in range(8000))
        with open(HERE + "/nginx.conf") as f, open(self.dir + "/nginx.conf", "w") as g:
            g.write(f.read().replace("@DIR@", self.dir).replace("@PORT@", str(port)))
        p = self.start(tool("nginx", "/usr/sbin"), "-e", self.dir + "/nginx.log", "-c", self.dir + "/nginx.conf")
        worker = wait_for("nginx's worker", lambda: [c for c in children(p.pid) if "worker" in command_line(c)])[0]
        self.threads = [threading.Thread(target=self.visit, args=(port,)) for _ in range(2)]
        for t in self.threads:
            t.start()
        return worker

    def visit(self, port):
        while not self.stop.is_set():
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                while not self.stop.is_set():
                    c.request("GET", "/catalogue.txt", headers={"Accept-Encoding": "gzip"})
                    c.getresponse().read()
                    time.sleep(0.02)
            except OSError:
                self.stop.wait(0.1)
            finally:
                c.close()

    def postgres(self):
        """CLIENTS with orders.sql; the process of one of their backends."""
        bin, data = postgres_folder(), self.dir + "/data"
        self.once(bin + "/initdb", "-D", data, "-A", "trust", "-U", "shop", "--no-sync")
        p = self.start(bin + "/postgres", "-D", data, "-k", self.dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB",
                       ends_by=signal.SIGINT)
        to = ["-h", self.dir, "-U", "shop"]
        wait_for("PostgreSQL", lambda: subprocess.run([bin + "/pg_isready", "-q", *to]).returncode == 0)
        self.once(bin + "/psql", *to, "-q", "-c", "CREATE TABLE orders (what text)", "-c",
                  "CREATE TABLE stock (id int PRIMARY KEY, sold int)", "-c", "INSERT INTO stock VALUES (1, 0)", "postgres")
        self.start(tool("pgbench", bin), *to, "-n", "-c", str(CLIENTS), "-T", "3600", "-f", "orders.sql", "postgres")
        # The youngest of so many: those of psql and of pgbench's first connection may still be ending.
        return wait_for("PostgreSQL's backends",
                        lambda: [c for c in children(p.pid) if "[local]" in command_line(c)][CLIENTS - 1:])[-1]
