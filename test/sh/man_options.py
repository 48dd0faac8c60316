#!/usr/bin/env python3
# Each command's manual page has exactly the options that its --help lists, which is made from the command's table.
import os
import re
import subprocess

from checks import *

DESCRY = os.environ["DESCRY"]
MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "man")


def options(*command):
    """-x and --long of each line of the list that the command prints."""
    text = subprocess.run([DESCRY, *command], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = re.findall(r"^  (-\w)?(?:, )?(--[\w-]+)?[ =[,]", text, re.M)
    return {o for row in rows for o in row if o}


def in_page(page):
    """Those that begin an entry of a list: `.It Fl x Ar value , Fl -long`, `.It Fl x , -long`."""
    found = set()
    for line in open(os.path.join(MAN, page)):
        if line.startswith(".It Fl "):
            words = line.split()
            found |= {"-" + w for before, w in zip(words, words[1:]) if before in ("Fl", ",") and w != "Fl"}
    return found


tracing = options("help", "tracing")
pages = sorted(p for p in os.listdir(MAN) if p.endswith(".1") and p != "descry-help.1")
check(len(pages) > 7 and len(tracing) > 25, "pages", pages, tracing)
for page in pages:
    command = page[:-2].split("-")[1:]
    has, says = options(*command, "--help") if command else tracing, in_page(page)
    check(has, command, "has options")
    if command and ".Xr descry 1" in open(os.path.join(MAN, page)).read():
        has = has - (tracing - says) # the page of descry itself explains a program's options
    check(has <= says, page, "lacks", sorted(has - says))
    says -= {"-32", "-64"} # they have no effect: --help leaves them out
    check(says <= has, page, "has, and the command has not", sorted(says - has))
done()
