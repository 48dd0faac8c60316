#!/usr/bin/env python3
# Every command of the tutorial, of the one-liners and of the page for users of other tracers ends well, or by ^C, and
# gives an answer. Root runs all of them. An ordinary user runs the commands that trace the user's own programs; the
# others name the missing privilege.
# serial
# timeout: 600
import concurrent.futures
import socket
import threading
import pages
from live import *

PAGES = ["doc/tutorial.md", "doc/one-liners.md", "doc/coming-from.md"]
# Perhaps no thread waits for these locks meanwhile. For an ordinary user the system calls of `ls` are traced from its
# entry point on.
MAY_BE_SILENT = ["lockstat:::"]


def silent(command, r):
    return not r.stdout.strip() and not any(m in command.text for m in MAY_BE_SILENT)


def judge(command, r, who, before=()):
    if not pages.failed(r) and silent(command, r):
        r = player.play(command, before, 20)  # a longer look, in case the machine was busy
    check(not pages.failed(r) and not silent(command, r), "%s: %s" % (who, command), r.returncode, r.stderr[-800:], r.stdout[-300:])


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


lists = {page: pages.commands(page) for page in PAGES}
check(len(lists["doc/one-liners.md"]) == 50, "fifty one-liners", len(lists["doc/one-liners.md"]))
check(len(lists["doc/tutorial.md"]) > 12 and len(lists["doc/coming-from.md"]) > 12, "pages with commands",
      {page: len(found) for page, found in lists.items()})
every = list({c.text: c for c in sum(lists.values(), [])}.values())

with pages.Player(DESCRY) as player:
    for c in every:
        c.text += " && wc -c /tmp/du.svg" if "du.svg" in c.text else ""
    stop = threading.Event()
    noise = threading.Thread(target=load, args=(stop, player.dir))
    noise.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for c, r in zip(every, pool.map(player.play, every)):
                judge(c, r, "root")
        if os.path.exists(player.dir + "/tmp/du.svg"):
            os.unlink(player.dir + "/tmp/du.svg")
        # As in the pages: commands with -c need no root, except for the tutorial's look at the scheduler.
        own = [c for c in every if re.search(r"descry (help|list)| -c ", c.text) and "waits.d" not in c.text]
        check(len(own) > 20, "commands for an ordinary user", [c.text for c in own])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for c, r in zip(own, pool.map(lambda c: player.play(c, pages.NOBODY), own)):
                judge(c, r, "ordinary user", pages.NOBODY)
            rest = [c for c in every if c not in own]
            for c, r in zip(rest, pool.map(lambda c: player.play(c, pages.NOBODY), rest)):
                check(pages.told(r) or (r.returncode == 0 and r.stdout.strip()), "ordinary user is told what is missing: %s" % c,
                      r.returncode, r.stderr[-800:], r.stdout[-300:])
    finally:
        stop.set()
        noise.join()
done()
