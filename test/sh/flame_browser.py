#!/usr/bin/env python3
# Flame graphs in headless Chromium: zoom, search, hover, keys; in the SVG and on the canvas; hostile names run nothing.
import os
import re
import shutil
import subprocess
import tempfile

from browser import CHROMIUM
from checks import *

if not shutil.which("chromium"):
    skip("chromium is not installed")

DESCRY = os.environ["DESCRY"]
TMP = tempfile.TemporaryDirectory()
TEXT = b"all;x;hot 60\nall;x;cold 20\nall;y;hot 15\nall;y;<script>document.title='owned'</script> 5\n"


def browse(name, args, script, fragment=""):
    """Returns the document after the page's script, and `script` behind it, have run."""
    path = os.path.join(TMP.name, name)
    text = subprocess.run([DESCRY, "flame", "--" + name.split(".")[1], *args], input=TEXT, stdout=subprocess.PIPE, check=True).stdout.decode()
    end = "</svg>" if name.endswith(".svg") else "</body>"
    at = text.rindex(end)
    text = text[:at] + "<script><![CDATA[\n%s\n]]></script>" % script * name.endswith(".svg") + \
        "<script>\n%s\n</script>" % script * name.endswith(".html") + text[at:]
    open(path, "w").write(text)
    argv = [*CHROMIUM, "--user-data-dir=" + TMP.name + "/profile",
            "--window-size=1280,800", "--virtual-time-budget=3000", "--dump-dom", "file://" + path + fragment]
    try:
        r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=90)
    except subprocess.TimeoutExpired:
        skip("chromium does not answer on this machine")
    if b"details" not in r.stdout:
        skip("chromium shows nothing on this machine")
    return r.stdout.decode()


def frames(dom):
    """name -> (classes, x, width) of the SVG's frames; of two frames of one name, both."""
    found = {}
    for m in re.finditer(r'<g ([^>]*)><title>(.*?) \([^(]*\)</title><rect x="([^"]*)"[^>]*? width="([^"]*)"', dom, re.S):
        cls = re.search(r'class="([^"]*)"', m.group(1))
        found.setdefault(m.group(2), []).append((cls.group(1) if cls else "", float(m.group(3)), float(m.group(4))))
    return found


def inner(dom, which):
    return re.search(r'id="%s"[^>]*>([^<]*)<' % which, dom).group(1)


FRAME = "function frame(n) { return Array.from(document.querySelectorAll('#frames > g')).find(" \
        "g => g.querySelector('title').textContent.startsWith(n + ' (')); }\n" \
        "function fire(t, e, o) { t.dispatchEvent(new (e[0] === 'k' ? KeyboardEvent : MouseEvent)(e, Object.assign(" \
        "{bubbles: true}, o))); }\n"

dom = browse("plain.svg", [], FRAME + "fire(frame('cold'), 'mouseover');")
check(inner(dom, "details") == "cold (20 samples, 20.00%)", "hover", inner(dom, "details"))
check("owned" not in re.sub(r"&lt;script&gt;.*?&lt;/script&gt;", "", dom).replace(".title='owned'", ""), "a name ran")

dom = browse("zoom.svg", [], FRAME + "fire(frame('y'), 'click');")
f = frames(dom)
check(f["y"][0][1:] == (10.0, 1180.0), "the frame fills the width", f["y"])
check("hide" in f["x"][0][0] and "above" in f["all"][0][0], "beside it nothing, below it pale", f)
check(f["hot"][1][1:] == (305.0, 885.0), "its children in their part", f["hot"])

dom = browse("back.svg", [], FRAME + "fire(frame('y'), 'click'); fire(document.getElementById('unzoom'), 'click');")
f = frames(dom)
check(f["x"][0][1:] == (10.0, 944.0) and "hide" not in f["x"][0][0], "Reset zoom", f["x"])

dom = browse("search.svg", [], "", "#s=%5Eh.t%24")
check(inner(dom, "matched") == "Matched: 75.0%", "search", inner(dom, "matched"))
check([c for c, _, _ in frames(dom)["hot"]] == ["match", "match"], "what matches is coloured")
dom = browse("case.svg", [], "", "#i=1&s=HOT%7C%5Ex%24")
check(inner(dom, "matched") == "Matched: 95.0%", "overlaps count once, case ignored", inner(dom, "matched"))

dom = browse("keys.svg", ["--inverted"], FRAME + "['ArrowDown','ArrowDown','ArrowRight','Enter'].forEach("
             "k => fire(window, 'keydown', {key: k}));")
check(inner(dom, "details").startswith("y (20 samples"), "keys", inner(dom, "details"))
check(frames(dom)["y"][0][1:] == (10.0, 1180.0), "Enter zooms")

FIRE = "function fire(e, x, y) { var c = document.getElementById('canvas'), r = c.getBoundingClientRect();" \
       "c.dispatchEvent(new MouseEvent(e, {bubbles: true, clientX: r.left + x, clientY: r.top + y})); }\n"
dom = browse("hover.html", ["--inverted"], FIRE + "fire('mousemove', 30, 2 * 16 + 8);")
check(inner(dom, "details") == "x (80 samples, 80.00%)", "hover on the canvas", inner(dom, "details"))
check('data-drawn="8"' in dom and 'data-culled="0"' in dom, "all frames are drawn")
dom = browse("zoom.html", ["--inverted"], FIRE + "fire('click', 1200, 2 * 16 + 8); fire('mousemove', 30, 3 * 16 + 8);")
check(inner(dom, "details").startswith("&lt;script&gt;"), "zoom on the canvas", inner(dom, "details"))
check('data-drawn="5"' in dom, "only what is in the zoomed frame, and below it")
check("<title>Icicle Graph</title>" in dom, "no name ran")
dom = browse("search.html", [], "", "#s=%5Ehot")
check(inner(dom, "matched") == "Matched: 75.0%", "search on the canvas", inner(dom, "matched"))

# A fragment that is no text, or that names a property of every object, is no state. The rest of it counts.
for fragment in ("#i=%E0%A4%A&s=%5Eh.t%24", "#constructor=1&__proto__=2&s=%5Eh.t%24", "#s=%&s=%5Eh.t%24"):
    for name in "odd.svg", "odd.html":
        dom = browse(name, [], "", fragment)
        check(inner(dom, "matched") == "Matched: 75.0%", "fragment", name, fragment, inner(dom, "matched"))

# A picture higher than the window opens where the stacks begin: at its lower end, or on top.
few, TEXT = TEXT, b"all;" + b";".join(b"f%d" % i for i in range(120)) + b" 5\n"
SCROLLED = "document.getElementById('details').textContent = [scrollY > 0, scrollY + innerHeight >= %s, innerHeight < %s].join();"
tall = "document.documentElement.getBoundingClientRect().height"
dom = browse("tall.svg", [], SCROLLED % (tall, tall))
check(inner(dom, "details") == "true,true,true", "a high picture", inner(dom, "details"))
dom = browse("tall.svg", ["--inverted"], SCROLLED % (tall, tall))
check(inner(dom, "details") == "false,false,true", "a high icicle graph", inner(dom, "details"))
dom = browse("tall.html", [], "var v = document.getElementById('view');" + SCROLLED.replace("scrollY", "v.scrollTop").replace(
    "innerHeight", "v.clientHeight") % ("v.scrollHeight", "v.scrollHeight"))
check(inner(dom, "details") == "true,true,true", "a high page", inner(dom, "details"))
TEXT = few

# Too many frames to be seen: those under half a pixel are left out and counted, and none is both or neither.
TEXT = b"".join(b"root;f%d;g%d;h%d 1\n" % (i % 300, i % 9000, i) for i in range(90000))
total = 1 + 1 + 300 + 9000 + 90000
dom = browse("narrow.html", [], "")
drawn, culled = (int(re.search('data-%s="(\\d+)"' % n, dom).group(1)) for n in ("drawn", "culled"))
check(drawn + culled == total and 300 < drawn < 10000, "culled frames are counted", drawn, culled, total)
check("%s frames too narrow" % format(culled, ",") in dom, "and said")
done()
