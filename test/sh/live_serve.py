#!/usr/bin/env python3
# descry serve: the server (token, host, refused requests) and the page in headless Chromium: live update, isolate, exclude,
# decompose, pause, scroll back, a range of the heat map as a flame graph, save, programs sent by the page; hostile names.
# serial
from live import *
from browser import Browser
from served import Served

HOSTILE = ["</script><script>window.owned=1</script>", "<img src=x onerror='window.owned=1'>", "\"'&\\;{{js}}", "\x01\x02\x7f",
           "\udcff\udcfe", "x" * 200, "\u202egnp.exe"]
tracee = os.path.join(TMP, "tracee.py")
with open(tracee, "w") as f:
    f.write("import os, sys, time\n"
            "names = [os.fsencode(n) for n in %r]\n"
            "def touch(name):\n"
            "    try: os.close(os.open(name, os.O_RDONLY))\n"
            "    except OSError: pass\n"
            "for i in range(10 ** 9):\n"
            "    if os.path.exists(%r): break\n"
            "    for k in range(3): touch(b'/nowhere/alpha')\n"
            "    touch(b'/nowhere/beta')\n"
            "    for n in names: touch(b'/nowhere/' + n)\n"
            "    time.sleep(0.02)\n" % (HOSTILE, os.path.join(TMP, "enough")))
PROGRAM = """
syscall::openat:entry
/pid == $target && strstr(copyinstr(arg1), "/nowhere/") == copyinstr(arg1)/
{
	this->n = copyinstr(arg1);
	@calls[this->n] = count();
	@where[this->n, stack()] = count();
	@length[this->n, stack()] = quantize(strlen(this->n));
	printf("%s\\n", this->n);
}
"""

if os.geteuid() or descry("-q", "-n", "syscall::getppid:entry { exit(0); } BEGIN { exit(0); }").rc:
    skip("bpf(2) is not permitted")

s = Served("--tick", "200", "-q", "-n", PROGRAM, "-c", "python3 " + tracee)

# The server: nothing without the token, nothing under another name, no program unless it was started so.
r, page = s.ask("/%s/" % s.token)
check(r.status == 200 and r.getheader("Content-Security-Policy").startswith("default-src 'none'"), "the page", r.status)
check(r.getheader("Referrer-Policy") == "no-referrer" and r.getheader("Cache-Control") == "no-store", "its headers")
check("src=" not in page and "http" not in page.replace("http-equiv", ""), "the page asks for nothing")
for path in ("/", "/%s" % s.token, "/" + "0" * 32 + "/", "/%s/../x" % s.token[:-1], "/events", "//%s/" % s.token):
    check(s.ask(path)[0].status == 403, "without the token", path)
check(s.ask("/%s/none" % s.token)[0].status == 404, "nothing else")
check(s.ask("/%s/" % s.token, Host="evil.example:80")[0].status == 403, "another host's name")
check(s.ask("/%s/" % s.token, Host="localhost:" + s.host.split(":")[1])[0].status == 200, "localhost")
r, text = s.ask("/%s/run" % s.token, "POST", "BEGIN { exit(0); }", X_Descry="1")
check(r.status == 403 and "--allow-d" in text, "no D is taken", r.status, text)
check(s.ask("/%s/" % s.token, "POST", "x")[0].status == 405, "no other method")

b = Browser()
atexit.register(b.close)
b.open(s.url)
check(b.until("descry.S.ticks.length > 4"), "ticks come")
check(b.eval("document.getElementById('state').textContent") == "live", "it says live")

# Live update: the picture grows.
before = b.eval("+document.body.dataset.total")
check(b.until("+document.body.dataset.total > %d" % before), "the flame graph moves")
check(b.until("document.querySelectorAll('#table tr').length >= 2 * %d" % (2 + len(HOSTILE))), "the table has all names")
check(b.until("document.querySelectorAll('#events div').length > 20"), "the events move")

# Names are text, whatever they contain.
check(b.eval("window.owned === undefined && !document.querySelector('img')"), "no name ran")
texts = b.eval("Array.from(document.querySelectorAll('#table .key')).map(e => e.textContent)")
for name in ("/nowhere/" + HOSTILE[0], "/nowhere/" + HOSTILE[1], "/nowhere/" + HOSTILE[2]):
    check(name in texts, "a name as it is", name)
check(any("\\xff\\xfe" in t for t in texts), "bytes that are no UTF-8", texts)
check(any("x" * 100 in t for t in texts), "a long name")
check("/nowhere/\\u202egnp.exe" in texts and "/nowhere/\\x01\\x02\\x7f" in texts, "what cannot be seen is shown", texts)

# Pause: the shown data stays while more comes in. Scroll back: less of it.
b.eval("document.getElementById('pause').click()")
b.until("descry.V.paused")
b.eval("descry.draw()")  # with what came between the last picture and the click
paused = b.eval("+document.body.dataset.total")
n = b.eval("descry.S.ticks.length")
check(b.until("descry.S.ticks.length > %d" % (n + 3)), "ticks come while paused")
check(b.eval("+document.body.dataset.total") == paused, "the picture stays")
b.eval("(function () { var e = document.getElementById('back'); e.value = 2; e.dispatchEvent(new Event('input')); })()")
check(b.until("+document.body.dataset.total < %d" % paused), "scrolled back", paused)
b.eval("document.getElementById('pause').click()")
check(b.until("+document.body.dataset.total > %d" % paused), "it goes on")

# Isolate, exclude, decompose.
CLICK = "Array.from(document.querySelectorAll('#table .%s')).find(e => e.title === %s).click()"
b.eval(CLICK % ("key", json.dumps("only /nowhere/alpha")))
b.until("descry.flame().root.kids.size === 1")
check(b.eval("Array.from(descry.flame().root.kids.keys())") == ["/nowhere/alpha"], "isolated")
check(set(b.eval("Array.from(document.querySelectorAll('#table .key')).map(e => e.textContent)")) == {"/nowhere/alpha"}, "the table too")
b.eval("document.querySelector('.chip').click()")
check(b.until("descry.flame().root.kids.size > 2"), "undone")
b.eval(CLICK % ("not", json.dumps("without /nowhere/alpha")))
check(b.until("!descry.flame().root.kids.has('/nowhere/alpha') && descry.flame().root.kids.size > 2"), "excluded")
b.eval("document.querySelector('.chip').click()")
b.eval("(function () { var e = document.getElementById('decompose'); e.value = 0; e.dispatchEvent(new Event('change')); })()")
check(b.until("document.querySelectorAll('#legend .key').length >= 4"), "decomposed")

# A range of the heat map is a flame graph of just that: pick it with the mouse.
b.eval("document.getElementById('pause').click()")
b.until("descry.V.paused")
size = b.eval("(descry.draw(), [descry.heat().n, descry.heat().rows.length])")
check(size[0] > 6 and size[1] >= 2, "the heat map", size)
row = b.eval("(function () { var best = null; descry.heat().cells.forEach(c => { if (c.col > 1 && c.col < 5 && (!best || c.n > best.n)) best = c; }); return best.row; })()")
at = b.eval("(function () { var r = document.getElementById('heat').getBoundingClientRect(), a = descry.map.place(2, %d), b = descry.map.place(4, %d);"
            " return [r.left + a.x, r.top + a.y, r.left + b.x, r.top + b.y]; })()" % (row, row))
b.drag(*at)
sel = b.until("descry.V.sel")
check(sel and sel["to"] - sel["from"] == 2 and sel["lo"] == sel["hi"] == row, "the selection", sel)
b.eval("descry.draw()")
want = b.eval("(function () { var n = 0; descry.heat().cells.forEach(c => { if (c.row === %d && c.col >= 2 && c.col <= 4) n += c.n; }); return n; })()" % row)
got = b.eval("descry.flame().root.total")
check(got == want > 0, "its flame graph counts the cells selected", got, want)
check(b.eval("(function f(n) { return n.name.includes('do_syscall') || Array.from(n.kids.values()).some(f); })(descry.flame().root)"), "made of stacks")
check(b.eval("(function () { var m = descry.map.matrix(), n = 0; m.columns.forEach(c => { for (var i = 0; i < c.cells.length; i += 3) n += c.cells[i + 2]; });"
             " descry.heat().cells.forEach(c => { n -= c.n; }); return n === 0 && descry.map.state().total > 0; })()"), "the map drawn holds every count")
b.drag(*at, modifiers=8)
b.until("descry.V.sel && descry.V.sel.lo === null")
check(b.eval("descry.V.sel.lo === null && descry.V.sel.to - descry.V.sel.from === 2"), "with Shift: the time only", b.eval("descry.V.sel"))
b.click(*at[:2])
check(b.until("descry.V.sel && descry.V.sel.from === descry.V.sel.to && descry.V.sel.lo === %d" % row), "a click selects a cell", b.eval("descry.V.sel"))
shot = os.environ.get("SCREENSHOT")
if shot:
    b.screenshot(shot)

# Search, zoom, keys.
b.eval("(function () { var e = document.getElementById('search'); e.value = 'do_syscall'; e.dispatchEvent(new Event('input')); })()")
check(b.eval("document.getElementById('matched').textContent") == "Matched: 100.0%", "search")
b.eval("(function () { var e = document.getElementById('search'); e.value = '('; e.dispatchEvent(new Event('input')); })()")
b.eval("window.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
check(b.until("!descry.V.sel && !descry.V.paused"), "Escape: all again")

# The end: every call was counted, on the page as in the kernel.
open(os.path.join(TMP, "enough"), "w").close()
check(b.until("!descry.S.running"), "the end is said")
check(b.until("document.getElementById('state').textContent.startsWith('ended')"), "and shown")
totals = b.eval("(function () { var t = {}; descry.S.ticks.forEach(k => Object.keys(k.d).forEach(id => { var g = descry.S.aggs[id];"
                "var w = g.func === 'quantize' ? 3 : 2; for (var i = 0; i < k.d[id].length; i += w) { var n = g.rows[k.d[id][i]].k[0] + g.name;"
                "t[n] = (t[n] || 0) + k.d[id][i + w - 1]; } })); return t; })()")
alpha, beta = totals.get("/nowhere/alphacalls", 0), totals.get("/nowhere/betacalls", 1)
check(alpha == 3 * beta > 30, "three of one for one of the other", alpha, beta)
check(alpha == totals.get("/nowhere/alphawhere") == totals.get("/nowhere/alphalength"), "the views agree", totals)

# Saved, it needs no server.
saved = os.path.join(TMP, "saved.html")
open(saved, "w").write(b.eval("descry.page()"))
live_total = b.eval("(descry.all(), descry.draw(), descry.flame().root.total)")
s.end()
b.open("file://" + saved)
check(b.until("window.descry && +document.body.dataset.total") == live_total, "saved and opened again")
check(b.eval("window.owned === undefined && document.getElementById('state').textContent.startsWith('ended')"), "and nothing ran")

# Programs from the page, where that is allowed.
s = Served("--allow-d", "--tick", "200", "-q")
r, text = s.ask("/%s/run" % s.token, "POST", "BEGIN { exit(0); }")
check(r.status == 403, "only from the page", r.status, text)
b.open(s.url)
b.until("!document.getElementById('dbox').hidden")
b.eval("document.getElementById('d').value = 'tick-100ms { @ticks[\"<b>\"] = count(); printf(\"tock\"); }'; document.getElementById('run').click()")
check(b.until("descry.S.running && descry.S.ticks.length > 3"), "it runs")
check(b.until("Array.from(document.querySelectorAll('#table .key')).some(e => e.textContent === '<b>')"), "and counts")
b.eval("document.getElementById('d').value = 'BEGIN { x = ; }'; document.getElementById('run').click()")
check(b.until("Array.from(document.querySelectorAll('#events .m')).some(e => e.textContent.includes('D_SYNTAX'))"), "what is wrong with a program is shown")
b.eval("document.getElementById('d').value = 'tick-100ms { @again = count(); }'; document.getElementById('run').click()")
check(b.until("descry.S.running && descry.S.order.length && descry.S.order[0].name === 'again'"), "another one")
b.eval("document.getElementById('stop').click()")
check(b.until("!descry.S.running"), "stopped")
s.end()
check(s.process.returncode == 0, "it ends with 0", s.process.returncode)
for argv, why in ((["--port", "x", "-n", "BEGIN"], "a whole number"), (["--bind", "nowhere", "-n", "BEGIN"], "is not an address"),
                  (["--json", "-n", "BEGIN"], "only tracing"), ([], "usage")):
    r = subprocess.run([DESCRY, "serve", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(r.returncode in (1, 2) and why in r.stderr.decode(), "wrong usage", argv, r)
done()
