#!/usr/bin/env python3
"""play [DESCRY [WORD]]: the commands of doc/first-hour.md, asked of nginx, PostgreSQL and a Python program that run for it, with what they print.
As root; commands after `$` run as the ordinary user that the three programs run as. Takes a minute. With a
WORD only the commands that have it."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../sh"))
import pages
import servers

lacking = servers.missing()
if lacking or os.geteuid():
    sys.exit("play: needs root" if os.geteuid() else "play: not installed: " + ", ".join(lacking))
with servers.Servers() as s, pages.Player(sys.argv[1] if len(sys.argv) > 1 else "build/cmd/descry", s.names,
                                              *(os.path.join(servers.HERE, f) for f in ("shop.py", "prices.py"))) as player:
    for c in pages.commands("doc/first-hour.md"):
        if len(sys.argv) > 2 and sys.argv[2] not in c.text:
            continue
        print("%s %s" % (c.prompt, c.text), flush=True)
        r = player.play(c, pages.NOBODY if c.prompt == "$" else ())
        print(r.stdout + r.stderr, flush=True)
