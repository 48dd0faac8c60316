#!/usr/bin/env python3
# doc/first-hour.md: its commands answer its questions about nginx, PostgreSQL and a Python program. Names in backquotes in the paragraph
# below an output are in that output, and the page shows them there, too.
# serial
# timeout: 600
import pages
import servers
from live import *

lacking = servers.missing()
if lacking:
    skip("not installed: %s (tools/install-deps --test)" % ", ".join(lacking))
found = pages.commands("doc/first-hour.md")
check(len(found) == 10 and "first-hour" in sh(DESCRY + " help").stdout, "the page, and the way to it", len(found))
questions = re.findall(r"^## ([^\n]*\?)\n(.*?)(?=^## |\Z)", open("doc/first-hour.md").read(), re.M | re.S)
check(len(questions) == 5 and all(1 <= len(re.findall(r"^    [#$] ", text, re.M)) <= 3 for _, text in questions),
      "five questions, each with at most three commands", [q for q, _ in questions])


def lacks(c, text):
    return [name for name in c.claims if name not in text]


with servers.Servers() as s, pages.Player(DESCRY, s.names, *(os.path.join(servers.HERE, f) for f in ("shop.py", "prices.py"))) as player:
    for c in found:
        check(c.prompt and c.shown and c.claims, "a prompt, an output, and what it says", c)
        check(not lacks(c, "\n".join(c.shown)), "the page shows what it says", c, lacks(c, "\n".join(c.shown)))
        # On a busy machine the answer may need a longer look.
        for secs in 3, 10, 30:
            r = player.play(c, pages.NOBODY if c.prompt == "$" else (), secs)
            if pages.failed(r) or not lacks(c, r.stdout):
                break
        check(not pages.failed(r) and not lacks(c, r.stdout), c, lacks(c, r.stdout), r.returncode, r.stderr[-800:], r.stdout[-1500:])
done()
