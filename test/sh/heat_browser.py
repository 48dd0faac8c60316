#!/usr/bin/env python3
# Heat maps in headless Chromium: hover, click for details, range, zoom, isolate, exclude, keys, appended columns; colours and labels are those of the
# SVG; hostile names run nothing.
import html
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import xml.dom.minidom

from browser import CHROMIUM
from checks import *

if not shutil.which("chromium"):
    skip("chromium is not installed")

DESCRY = os.environ["DESCRY"]
TMP = tempfile.TemporaryDirectory()
# Two series. In second 102, row 5 has three of cp and one of dd; 60 is dd's alone.
TEXT = "100.1 5 cp\n101.5 60 dd\n102.1 5 cp\n102.2 5 dd\n102.3 5 cp\n102.9 5 cp\n104.5 1000 <script>document.title='owned'</script>\n"


def heat(*args, text=TEXT):
    return subprocess.run([DESCRY, "heat", *args], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()


HELP = """
var H = descryHeat, said = {}, plot = document.getElementById('plot');
['heatcell', 'heatrange'].forEach(function (n) { plot.addEventListener(n, function (e) {
	said[n] = e.detail && JSON.parse(JSON.stringify(e.detail, function (k, v) { return typeof v === 'bigint' ? String(v) : v; })); }); });
function fire(e, c, r, o) { var p = H.place(c, r), b = H.canvas.getBoundingClientRect();
	H.canvas.dispatchEvent(new MouseEvent(e, Object.assign({bubbles: true, clientX: b.left + p.x, clientY: b.top + p.y}, o))); }
function click(c, r) { fire('mousedown', c, r); fire('mouseup', c, r); }
function drag(c, r, c2, r2) { fire('mousedown', c, r); fire('mousemove', c2, r2); fire('mouseup', c2, r2); }
function key(k, o) { H.canvas.dispatchEvent(new KeyboardEvent('keydown', Object.assign({key: k, bubbles: true, cancelable: true}, o))); }
function row(v) { return H.matrix().value.rows.findIndex(function (b) { return (b[0] === null || b[0] <= v) && (b[1] === null || v <= b[1]); }); }
function text(id) { return document.getElementById(id).textContent; }
"""


def browse(script, *args, text=TEXT, fragment="", clock=["--virtual-time-budget=3000"]):
    """What `script` leaves in `out`, after the page's own scripts have run."""
    page = heat("--html", "-q", *args, text=text)
    at = page.rindex("</body>")
    path = os.path.join(TMP.name, "map.html")
    with open(path, "w") as f:
        f.write(page[:at] + "<script>" + HELP + "var out = {};\n" + script +
                "\ndocument.body.dataset.out = JSON.stringify(out); document.body.dataset.title = document.title;</script>" + page[at:])
    argv = [*CHROMIUM, "--user-data-dir=" + TMP.name + "/profile",
            "--window-size=1280,800", *clock, "--dump-dom", "file://" + path + fragment]
    try:
        dom = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=90).stdout.decode()
    except subprocess.TimeoutExpired:
        skip("chromium does not answer on this machine")
    if "details" not in dom:
        skip("chromium shows nothing on this machine")
    check(re.search(r'data-title="([^"]*)"', dom) and re.search(r'data-title="([^"]*)"', dom).group(1) == "Heat map", "no name ran, the script did")
    return json.loads(html.unescape(re.search(r'data-out="([^"]*)"', dom).group(1)))


# Hover, click for details, the top list. A place outside has no cell.
got = browse("""
fire('mousemove', 2, row(5)); out.hover = text('details');
fire('mousemove', 3, row(5)); out.empty = text('details');
click(2, row(5)); out.cell = said.heatcell; out.panel = text('panel'); out.open = document.getElementById('panel').className;
document.getElementById('close').click(); out.closed = document.getElementById('panel').className;
""")
check(got["hover"].startswith("2s, 5: 4 (57.1%)") and "cp 3; dd 1" in got["hover"], "hover", got["hover"])
check(got["empty"].startswith("3s, 5: 0"), "hover over nothing", got["empty"])
check(got["cell"]["count"] == 4 and [(p["series"], p["count"]) for p in got["cell"]["parties"]] == [("cp", 3), ("dd", 1)], "click", got["cell"])
check(got["cell"]["time"] == {"from": "102000000000", "to": "103000000000"} and got["cell"]["value"] == {"min": 5, "max": 5}, "where", got["cell"])
check("4 events" in got["panel"] and "75.0%" in got["panel"] and got["open"] == "open" and got["closed"] == "", "the panel", got)

# A range: by mouse and by keys; zoom into it and back.
got = browse("""
drag(1, row(5), 2, row(80)); out.range = said.heatrange; key('z'); out.zoomed = H.state().view; out.gone = said.heatrange;
key('Escape'); out.back = H.state().view;
H.pick({column: 1, row: row(5)}); key('ArrowRight', {shiftKey: true}); key('ArrowUp', {shiftKey: true}); out.keys = said.heatrange;
key('Escape'); out.none = said.heatrange; key('ArrowLeft'); out.cursor = H.state().cursor; out.details = text('details');
key('Enter'); out.entered = said.heatcell.column;
out.rows = [row(5), row(80)];
""")
check(got["range"]["time"] == {"from": "101000000000", "to": "103000000000"} and got["range"]["value"]["min"] == 5 and got["range"]["count"] == 5, "range", got["range"])
check(got["zoomed"] == {"from": 1, "to": 2, "bottom": got["rows"][0], "top": got["rows"][1]} and got["gone"] is None, "zoom", got["zoomed"])
check(got["back"] is None, "Escape")
check(got["keys"]["columns"] == {"from": 1, "to": 2} and got["keys"]["count"] == 4 and got["none"] is None, "a range by keys", got["keys"])
check(got["cursor"]["column"] == 1 and got["details"].startswith("1s, 6 to 8") and got["entered"] == 1, "keys", got["cursor"], got["details"])

# Isolate, exclude: by click and by key; the scale.
got = browse("""
document.querySelector('[data-series="0"]').click(); out.only = H.state().only; out.count = H.count(2, row(5)); out.other = H.count(1, row(60)); out.max = H.state().max;
key('0'); out.all = H.state().total;
document.querySelector('[data-without="0"]').click(); out.without = H.state().without; out.left = H.state().total; out.left_cell = H.count(2, row(5));
out.off = document.querySelectorAll('.chip.off').length; document.querySelector('[data-without="0"]').click();
key('2'); out.second = H.state().only; key('2'); out.again = H.state().only;
key('c'); out.scale = H.state().scale; out.choice = document.getElementById('scale').value; out.hash = location.hash;
H.pick({column: 2, row: row(5)}); key('x'); out.x = H.state().without;
""")
check(got["only"] == 0 and got["count"] == 3 and got["other"] == 0 and got["max"] == 3, "isolate", got)
check(got["all"] == 7 and got["without"] == [0] and got["left"] == 3 and got["left_cell"] == 1 and got["off"] == 1, "exclude", got)
check(got["second"] == 1 and got["again"] is None and got["scale"] == got["choice"] == "linear" and "c=linear" in got["hash"] and got["x"] == [0], "keys", got)
got = browse("out.s = H.state();", fragment="#c=log&i=1&z=1,2,0,3")
check(got["s"]["scale"] == "log" and got["s"]["only"] == 1 and got["s"]["view"] == {"from": 1, "to": 2, "bottom": 0, "top": 3}, "a link shows the same", got["s"])

# The picture is that of the SVG, cell for cell: colours, bounds, times, counts.
rng = random.Random(9)
MANY = "".join("%.3f %d %s\n" % (1000 + rng.random() * 40, rng.lognormvariate(9, 2), rng.choice(["a", "b", "b", "c", "d", "e", "f", "g", "h"]))
               for _ in range(4000))
for args in ([], ["--colors", "linear"], ["--colors", "log"], ["--unit", "bytes", "--linear"], ["--isolate", "b", "--unit", "ns"], ["--unit", "widgets"], ["--unit", "constructor"],
             ["--unit", "__proto__"]):
    svg = xml.dom.minidom.parseString(heat("-q", *args, text=MANY))
    want = []
    for r in svg.getElementsByTagName("rect"):
        if r.getElementsByTagName("title"):
            want.append([r.getAttribute("fill"), r.getElementsByTagName("title")[0].firstChild.data.split(" (")[0]])
    labels = sorted(t.firstChild.data for t in svg.getElementsByTagName("text") if t.getAttribute("class") in ("value", "time"))
    got = browse("""
var s = H.state(); out.cells = [];
for (var c = 0; c < s.columns; c++) for (var r = 0; r < s.rows; r++) if (H.color(c, r))
	out.cells.push([H.color(c, r), H.describe({from: c, to: c, bottom: r, top: r}).text + ': ' + H.count(c, r).toLocaleString('en')]);
var x = H.canvas.getContext('2d'), k = window.devicePixelRatio, seen = out.cells.length, wrong = 0;
H.redraw();
for (c = 0; c < s.columns; c++) for (r = 0; r < s.rows; r++) {
	var p = H.place(c, r), d = x.getImageData(Math.floor(p.x * k), Math.floor(p.y * k), 1, 1).data;
	if ('#' + [d[0], d[1], d[2]].map(function (v) { return (256 + v).toString(16).slice(1); }).join('') !== (H.color(c, r) || '#ffffff')) wrong++;
}
out.wrong = wrong; out.ms = s.ms;
""", *args, text=MANY)
    check(got["wrong"] == 0, "the canvas has these colours", args, got["wrong"])
    near = 2 if "log" in args else 0
    same = len(want) == len(got["cells"]) and all(
        a[1] == b[1] and all(abs(int(a[0][i:i + 2], 16) - int(b[0][i:i + 2], 16)) <= near for i in (1, 3, 5)) for a, b in zip(want, got["cells"]))
    check(same, "SVG and canvas agree", args, [x for x in zip(want, got["cells"]) if x[0] != x[1]][:3], len(want), len(got["cells"]))
check(labels, "labels")

# Appended columns give the same map as the whole at once. Old columns are dropped. Rows may grow.
got = browse("""
var doc = H.matrix(), whole = JSON.parse(JSON.stringify(doc)), part = JSON.parse(JSON.stringify(doc));
part.columns = part.columns.filter(function (c) { return c.column < 20; }); part.time.columns = 20;
H.setMatrix(part);
whole.columns.filter(function (c) { return c.column >= 20; }).forEach(function (c) { H.append(JSON.parse(JSON.stringify(c))); });
function all() { var s = H.state(), a = []; for (var c = 0; c < s.columns; c++) for (var r = 0; r < s.rows; r++) a.push(H.color(c, r), H.count(c, r)); return a.join(); }
var appended = all(), s1 = H.state();
H.setMatrix(JSON.parse(JSON.stringify(whole))); out.same = appended === all() && s1.total === H.state().total;
var n = H.state().columns, second = H.count(1, 5), first = H.matrix().time.first;
H.append({column: n, cells: [5, 0, 7], keep: n}); out.kept = H.state().columns === n && H.count(0, 5) === second && H.count(n - 1, 5) === 7 && H.matrix().time.first === first + 1;
H.append({column: first + n + 1, absolute: true, cells: [5, 0, 9], keep: 10}); out.ten = [H.state().columns, H.count(9, 5), H.matrix().time.first - first - n + 8];
var rows = H.matrix().value.rows; H.append({column: 10, rows: [[-9, -1]].concat(rows), cells: [0, 0, 4]}); out.rows = [H.count(9, 6), H.count(10, 0), H.state().rows - rows.length];
H.append({column: 10, cells: [0, 0, 5]}); out.replaced = H.count(10, 0); H.redraw();
""", text=MANY)
check(got["same"] and got["kept"], "appended columns", got)
check(got["ten"] == [10, 9, 0] and got["rows"] == [9, 4, 1] and got["replaced"] == 5, "columns fall off, rows grow", got)

# 600 x 100 cells, ranked; the figure is printed, not judged.
cells = "".join("%d %d %s\n" % (5000 + c, r, "ab"[r % 2]) * (1 + (c * r) % 7) for c in range(600) for r in range(100))
got = browse("var t = []; for (var i = 0; i < 30; i++) t.push(H.refresh()); out.ms = t.sort(function (a, b) { return a - b; })[15]; out.cells = H.state().cells;",
             "--linear=1", "--max", "100", text=cells, clock=[])
check(got["cells"] == 60000, "all cells", got)
print("600 x 100 cells redrawn in %.1f ms" % got["ms"])
done()
