#!/usr/bin/env python3
# The page of descry serve in headless Chromium, without privileges: its text before the first second, names that are
# properties of JavaScript objects, a table for each aggregation, times, drops.
# serial
from served import *
from browser import Browser

ENGINE = ["-q", "-x", "engine=interp"]
NAMES = ["constructor", "__proto__", "hasOwnProperty", "toString", "valueOf"]
b = Browser()
atexit.register(b.close)
# Text drawn on a canvas.
b.call("Page.addScriptToEvaluateOnNewDocument", source="""
window.drawn = new Set();
(function (was) {
	CanvasRenderingContext2D.prototype.fillText = function (text) { window.drawn.add(text); return was.apply(this, arguments); };
})(CanvasRenderingContext2D.prototype.fillText);""")


def tables():
    """{caption: [cells of a row]}"""
    return b.eval("(function () { var t = {}; document.querySelectorAll('#table table').forEach(e => { t[e.caption ? e.caption.textContent : ''] ="
                  " Array.from(e.rows).map(r => Array.from(r.cells).map(c => (c.querySelector('.key') || c).textContent)); }); return t; })()")


# Before the first tick.
for tick, text in (("1000", "second."), ("60000", "60 seconds."), ("1500", "1500 ms.")):
    s = Served("--tick", tick, *ENGINE, "-n", "tick-1s { @[probename, stack()] = count(); }")
    b.open(s.url)
    b.until("window.descry && descry.S.program")
    # A tick may have come: the state before it, again.
    b.eval("(function () { descry.take({type: 'hello', ms: %s, history: 600, program: 'tick-1s', host: 'x', running: true, status: 0});"
           " window.drawn.clear(); descry.draw(); })()" % tick)
    drawn = b.eval("Array.from(window.drawn)")
    check("Waiting for the first " + text in drawn, "what it waits for", tick, drawn)
    check("All series are hidden." not in drawn and "all" not in drawn, "nothing is hidden", drawn)
    check(b.eval("document.getElementById('table').textContent") == "Waiting for the first " + text, "the table says so, too")
    check(b.eval("document.getElementById('state').textContent") == "live", "it is live", b.eval("document.getElementById('state').textContent"))
    s.end()

# Names that every object has.
program = " ".join('@q["%s"] = quantize(5); @c["%s"] = count();' % (n, n) for n in NAMES)
s = Served("--tick", "100", *ENGINE, "-n", "tick-20ms { n++; %s } tick-20ms /n >= 30/ { exit(0); }" % program)
b.open(s.url)
b.until("window.descry && descry.S.program && !descry.S.running")
b.eval("(function () { var e = document.getElementById('decompose'); e.value = 0; e.dispatchEvent(new Event('change')); descry.draw(); })()")
series = b.eval("Object.entries(descry.heat().series)")
check(sorted(series) == [[n, 30] for n in sorted(NAMES)], "the series", series)
check(sorted(b.eval("Array.from(document.querySelectorAll('#legend .key')).map(e => e.textContent)")) == sorted(NAMES), "the legend")
t = tables()
check(len(t) == 2, "two tables", t)
for rows in t.values():
    check(sorted(rows) == [["30", n] for n in sorted(NAMES)], "their rows", rows)
b.eval("(descry.filter('__proto__', false), descry.draw())")
check(all(rows == [["30", "__proto__"]] for rows in tables().values()), "isolated", tables())
# Frames with these names get colours like others, not the colour drawn before.
b.eval("(function () { descry.all(); descry.take({type: 'hello', ms: 1000, history: 600, program: 'x', host: 'x', running: true, status: 0});"
       " descry.take({type: 'tick', tick: 0, time: 0, running: true, status: 0, frames: [0, %s], stacks: [0, [[0], [1], [2], [3], [4]]], aggs: [{id: 0, name: '',"
       " func: 'count', unit: '', stacks: true, rows: [0, [0, 1, 2, 3, 4].map(i => ({k: [], s: i}))], d: [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]}]}); descry.draw(); })()" % json.dumps(NAMES))
colors = b.eval("descry.flame().boxes.map(x => [x.n.name, Array.from(document.getElementById('flame').getContext('2d')"
                ".getImageData((x.x + x.w - 4) * devicePixelRatio, (x.y + 4) * devicePixelRatio, 1, 1).data)])")
colors = {name: c for name, c in colors if name != "all"}
check(sorted(colors) == sorted(NAMES), "the frames", colors)
check(all(r > g > blue for r, g, blue, a in colors.values()), "their colours", colors)
s.end()

# A table for each aggregation. Times in people's units, where the compiler knows that a value is a time.
s = Served("--tick", "100", *ENGINE, "-n", """BEGIN
{
	this->t = timestamp;
	this->d = timestamp - this->t;
	@sum["x"] = sum(timestamp - this->t + 1500000);
	@avg["x"] = avg(this->d / 1000 + 2500);
	@max["x"] = max((timestamp - this->t) / 1000000 + 90000);
	@plain["x"] = sum(1500000);
	@both["x"] = sum(this->d + 7000);
	@both["x"] = sum(8000);
	@heat["x"] = quantize(this->d + 5000);
	exit(0);
}""")
b.open(s.url)
b.until("window.descry && descry.S.program && !descry.S.running && document.querySelector('#table td')")
t = tables()
for caption, cell in (("@sum sum()", "1.5 ms"), ("@avg avg()", "2.5 ms"), ("@max max()", "1.5 min"), ("@plain sum()", "1,500,000"),
                      ("@both sum()", "15,000"), ("@heat quantize(): how many values", "1")):
    check(t.get(caption) == [[cell, "x"]], "a table of", caption, t)
check(b.eval("descry.map.matrix().value.unit") == "ns", "the heat map's unit", b.eval("descry.map.matrix().value.unit"))
shot = os.environ.get("SCREENSHOT")
if shot:
    b.screenshot(shot)
s.end()

# Losses: each kind once, however often it is reported, with the option that helps.
s = Served("--tick", "100", *ENGINE, "-x", "nspec=1", "-x", "statusrate=50ms", "-n",
           "BEGIN { self->s = speculation(); } tick-20ms { n++; self->s = speculation(); } tick-20ms /n >= 40/ { exit(0); }")
b.open(s.url)
b.until("window.descry && descry.S.program && !descry.S.running")
b.eval("descry.draw()")
lines = b.eval("Array.from(document.querySelectorAll('#eventbox div div')).map(e => e.textContent)")
lost = [line for line in lines if "speculation" in line]
check(len(lost) == 1, "one line", lines)
check(lost and lost[0] == "40 failed speculations (no speculative buffer available): raise -x nspec, or commit() or discard() each", "which tells all", lost)
b.open(s.url)  # a page that comes late is told, too
b.until("window.descry && descry.S.program && !descry.S.running")
check(b.eval("(descry.draw(), document.getElementById('drops').textContent)") == (lost or [""])[0], "told late")
s.end()
check(b"40 failed" not in s.said and s.said.count(b"failed speculation") > 1, "the terminal is told as it happens", s.said)
done()
