#!/usr/bin/env python3
# descry heap -o page.html in headless Chromium: a click on a class shows the merged paths from roots to its objects, by names of references;
# hostile names are text; a list of 300,000 nodes takes no long time.
from browser import Browser
from live import *


def dump(name, lines):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")
    return path


def page(*where):
    path = os.path.join(TMP, "page.html")
    r = subprocess.run([DESCRY, "heap", "-o", path, *where], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(r.returncode == 0, "exit", r.returncode, r.stderr)
    return path


HOSTILE = "<b id=owned>\"'&</b></script>"
small = dump("small.json", [
    {"type": "ROOT", "root": "vm", "references": ["0x1000", "0x5000"]},
    {"address": "0x1000", "type": "HASH", "class": "0x2000", "references": ["0x3000", "0x3100"], "memsize": 400},
    {"address": "0x5000", "type": "OBJECT", "class": "0x2300", "references": ["0x5100"], "memsize": 3000},
    {"address": "0x5100", "type": "OBJECT", "class": "0x2300", "references": [], "memsize": 3000},
    {"address": "0x3000", "type": "STRING", "class": "0x2200", "value": "text", "memsize": 5000},
    {"address": "0x3100", "type": "STRING", "class": "0x2200", "value": "text", "memsize": 40},
    {"address": "0x2000", "type": "CLASS", "name": "Hash", "memsize": 500},
    {"address": "0x2200", "type": "CLASS", "name": "String", "memsize": 500},
    {"address": "0x2300", "type": "CLASS", "name": HOSTILE, "memsize": 500}])
b = Browser()


def click(name):
    """Clicks the middle of the widest frame of this name."""
    at = b.eval("""(function () {
        var d = JSON.parse(window.saved), v = document.getElementById('view'), c = document.getElementById('canvas').getBoundingClientRect();
        var total = d.self.slice(), parent = [], open = [], start = [], next = [], best = -1, i, x;
        for (i = 0; i < total.length; i++) { open.length = d.depth[i]; parent[i] = open.length ? open[open.length - 1] : -1; open.push(i); }
        for (i = total.length - 1; i > 0; i--) total[parent[i]] += total[i];
        for (i = 0; i < total.length; i++) { x = d.depth[i] ? next[d.depth[i] - 1] : 0; start[i] = x;
            if (d.depth[i]) next[d.depth[i] - 1] += total[i]; next[d.depth[i]] = x + d.self[i];
            if (d.names[d.name[i]] === %s && (best < 0 || total[i] > total[best])) best = i; }
        return [c.left + 10 + (start[best] + total[best] / 2) / total[0] * (v.clientWidth - 20), c.top + (d.depth[best] + 0.5) * d.height];
    })()""" % json.dumps(name))
    b.click(*at)
    return b.eval("document.getElementById('note').hidden ? '' : document.getElementById('note').textContent")


def load(path):
    with open(path) as f:
        text = f.read()
    # the page forgets its data, which say where the frames are
    with open(path, "w") as f:
        f.write(text.replace("</script>\n<script>\n", "</script>\n<script>window.saved = document.getElementById('data').textContent;</script>\n<script>\n", 1))
    b.open("file://" + path)
    b.until("document.body.dataset.drawn > 0")


load(page(small))
check(b.eval("document.getElementById('note').hidden"), "a note before a click")
note = click("String")
check(re.search(r"^String: 2 objects, 5040 bytes retained\n +LEADS TO +BYTES +PATH FROM A ROOT\n +2 +5040 +\[vm\] Hash @0x1000\n +2 +5040 +String \(2\)$", note), note)
b.eval("document.getElementById('unzoom').click()")
check(b.eval("document.getElementById('note').hidden"), "no note of the whole")
note = click(HOSTILE)
check(note.startswith(HOSTILE + ": 1 object, 6500 bytes retained\n") and "[vm] " + HOSTILE + " @0x5000" in note, "a hostile name", note)
check(not b.eval("!!document.getElementById('owned')"), "a hostile name is text")

# The nodes of a list hold each other: the paths of all frames are long.
N = 300000
long = dump("long.json", [{"type": "ROOT", "root": "vm", "references": ["0x1000"]}, {"address": "0x100", "type": "CLASS", "name": "Link", "memsize": 500}] +
            [{"address": hex(0x1000 + 64 * i), "type": "OBJECT", "class": "0x100", "references": [hex(0x1000 + 64 * (i + 1))], "memsize": 40} for i in range(N)])
load(page(long))
note = click("Link")
check("1 object, %d bytes retained" % (40 * N + 500) in note and "[vm] Link" in note, "a list", note)
if shutil.which("/usr/bin/node"):
    source = os.path.join(TMP, "kept.js")
    with open(source, "w") as f:
        f.write("class Kept { constructor(i) { this.text = 'x'.repeat(1000) + i; } }\nclass Keeper { constructor() { this.held = []; } }\n"
                "global.keeper = new Keeper();\nfor (let i = 0; i < 20000; i++) keeper.held.push(new Kept(i));\n"
                "for (const k of keeper.held) k.text.charCodeAt(0);\nsetInterval(() => {}, 1e9);\nrequire('fs').writeSync(1, 'ready\\n');\n")
    p = kill_at_end(subprocess.Popen(["/usr/bin/node", source], stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", "start")
    load(page("-p", str(p.pid)))
    note = click("Kept")
    check("the first 1000 of 20000 objects" in note and re.search(r"keeper: .*\n.* Keeper @0x\w+\n.*held: Array @0x\w+\n.*elements: \(array\) @0x\w+\n.*\[\]: Kept \(1000\)", note), note)
b.close()
done()
