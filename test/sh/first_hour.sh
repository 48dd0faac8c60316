# Every command of the tutorial, of the one-liners and of the page for those who come from other tracers: it ends well, or by ^C, and
# answers; as root all of them, as an ordinary user those that trace a program of the user's own.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
import concurrent.futures
import socket
import tempfile
import threading
from live import *

PAGES = ["doc/tutorial.md", "doc/one-liners.md", "doc/coming-from.md"]
USER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
# Nobody may wait for these locks meanwhile; as an ordinary user the system calls of `ls` are seen from its entry point on.
MAY_BE_SILENT = ["lockstat:::"]


def commands(page):
    return re.findall(r"^ {4,}(descry .*)$", open(page).read(), re.M)


def play(command, before=()):
    """Runs until its end or, when it has none, until one ^C a while after its first answer could be there."""
    argv = [*before, "bash", "-c", command]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          env=env, cwd=cwd, start_new_session=True) as p:
        for sig, secs in (signal.SIGINT, 3), (signal.SIGKILL, 40), (0, None):
            try:
                out, err = p.communicate(timeout=secs)
                break
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, sig)
    return subprocess.CompletedProcess(argv, p.returncode, out, err)


def judge(command, r, who):
    wrong = r.returncode or re.search(r"error:|rejects|not available|does not match", r.stderr)
    silent = not r.stdout.strip() and not any(m in command for m in MAY_BE_SILENT)
    check(not wrong and not silent, "%s: %s" % (who, command), r.returncode, r.stderr[-800:], r.stdout[-300:])


def load(stop, folder):
    """What makes the probes of the machine fire: files, programs, signals, packets, requests to a disk."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    while not stop.is_set():
        subprocess.run("cat /etc/passwd /nonexistent/name; dd if=/dev/zero of=%s/dd bs=64k count=4 oflag=direct; sync %s/dd; "
                       "rm -f %s/dd; sleep 9 & kill $!; wait" % (folder, folder, folder), shell=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with socket.create_connection(tcp.getsockname()) as c, tcp.accept()[0] as taken:
            c.sendall(b"x" * 1000)
            taken.recv(2000)
        udp.sendto(b"x", udp.getsockname())
        udp.recv(10)
    tcp.close()
    udp.close()


lists = {page: commands(page) for page in PAGES}
check(len(lists["doc/one-liners.md"]) == 50, "fifty one-liners", len(lists["doc/one-liners.md"]))
check(len(lists["doc/tutorial.md"]) > 12 and len(lists["doc/coming-from.md"]) > 12, "pages with commands", lists)
every = sorted(set(sum(lists.values(), [])))

with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/bin")
    shutil.copy(DESCRY, folder + "/bin/descry")
    shutil.copytree("examples", folder + "/examples")
    os.mkdir(folder + "/tmp", 0o777)
    os.chmod(folder + "/tmp", 0o777)
    env = dict(os.environ, PATH=folder + "/bin:" + os.environ["PATH"])
    cwd = folder
    every = [c.replace("/tmp/du.svg", folder + "/tmp/du.svg") + (" && wc -c " + folder + "/tmp/du.svg" if "du.svg" in c else "")
             for c in every]
    stop = threading.Event()
    noise = threading.Thread(target=load, args=(stop, folder))
    noise.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for c, r in zip(every, pool.map(play, every)):
                judge(c, r, "root")
        if os.path.exists(folder + "/tmp/du.svg"):
            os.unlink(folder + "/tmp/du.svg")
        own = [c for c in every if re.search(r"help|list|pid\$target|plt\$target|profile.* -c", c)]
        check(len(own) > 12, "commands for an ordinary user", own)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for c, r in zip(own, pool.map(lambda c: play(c, USER), own)):
                judge(c, r, "ordinary user")
    finally:
        stop.set()
        noise.join()
done()
END
