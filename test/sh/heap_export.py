#!/usr/bin/env python3
# descry heap -o x.heapsnapshot: the file has what the format asks for, number by number, and read back it has the same objects, bytes,
# retained sizes, roots and names of references, for the heaps of Java, Ruby, Python and Node.js, and for a snapshot of V8's own.
# timeout: 300
from live import *

FIELDS = ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"]
PROGRAMS = {
    "ruby": ("/usr/bin/ruby", "class Kept; def initialize(i); @name = \"kept #{i}\"; @next = [i.to_s]; end; end\n"
             "class Keeper; def initialize(held); @held = held; end; end\n"
             "$k = Keeper.new(Array.new(500) { |i| Kept.new(i) })\n$stdout.puts 'ready'; $stdout.flush; $stdin.gets\n", "@held"),
    "python": ("/usr/bin/python3", "import sys\nclass Kept:\n  def __init__(self, i): self.name = 'kept %d' % i; self.next = [str(i)]\n"
               "class Keeper:\n  def __init__(self, held): self.held = held\nk = Keeper([Kept(i) for i in range(500)])\n"
               "print('ready', flush=True); sys.stdin.readline()\n", "held"),
    "node": (shutil.which("node"), "class Kept { constructor(i) { this.name = 'kept \u017c ' + i; this.next = ['\"' + i]; } }\n"
             "class Keeper { constructor(held) { this.held = held; } }\nglobal.k = new Keeper(Array.from({ length: 500 }, (_, i) => new Kept(i)));\n"
             "process.on('SIGUSR2', () => { require('v8').writeHeapSnapshot(process.argv[2]); require('fs').writeSync(1, 'written\\n'); });\n"
             "setInterval(() => {}, 1e9); require('fs').writeSync(1, 'ready\\n');\n", "held"),
    "java": (shutil.which("java"), "public class Export { static class Kept { String name; Object[] next; Kept(int i) { name = \"kept \" + i;"
             " next = new Object[] { \"n\" + i }; } }\nstatic class Keeper { Kept[] held = new Kept[500]; }\nstatic Keeper k = new Keeper();\n"
             "public static void main(String[] a) throws Exception { for (int i = 0; i < 500; i++) k.held[i] = new Kept(i);\n"
             "System.out.println(\"ready\"); System.in.read(); } }\n", "held"),
}


def heap(*args):
    p = subprocess.run([DESCRY, "heap", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-800:])
    return p.stdout


def strict(path, name):
    """Goes over all numbers of a snapshot. Returns the texts of its strings, the names of members, and of what is no object."""
    with open(path) as f:
        s = json.load(f)
    meta, nodes, edges, strings = s["snapshot"]["meta"], s["nodes"], s["edges"], s["strings"]
    check(meta["node_fields"] == FIELDS and meta["edge_fields"] == ["type", "name_or_index", "to_node"], name, "fields", meta)
    check(all(k in s for k in ("trace_function_infos", "trace_tree", "samples", "locations")), name, "lists", list(s))
    n, m = len(FIELDS), 3
    check(len(nodes) == n * s["snapshot"]["node_count"] and len(edges) == m * s["snapshot"]["edge_count"], name, "counts")
    check(sum(nodes[4::n]) == s["snapshot"]["edge_count"], name, "edges of the nodes")
    check(len(set(nodes[2::n])) == len(nodes) // n and max(nodes[2::n]) < 2**32, name, "ids")
    node_types, edge_types = meta["node_types"][0], meta["edge_types"][0]
    check(all(0 <= t < len(node_types) for t in nodes[0::n]) and all(0 <= t < len(strings) for t in nodes[1::n]), name, "types and names")
    check(all(to % n == 0 and 0 <= to < len(nodes) for to in edges[2::m]), name, "targets")
    named = [i for i, t in enumerate(edges[0::m]) if edge_types[t] not in ("element", "hidden")]
    check(all(edges[i * m + 1] < len(strings) for i in named), name, "names of references")
    check(node_types[nodes[0]] == "synthetic" and strings[nodes[1]] == "" and nodes[4] == 1 and edges[:3] == [1, 1, n], name, "the root", nodes[:n], edges[:3])
    check(strings[nodes[n + 1]] == "(GC roots)", name, "the roots")
    texts = [strings[nodes[i + 1]] for i in range(0, len(nodes), n) if node_types[nodes[i]] in ("string", "concatenated string")]
    properties = {strings[edges[i * m + 1]] for i in named if edge_types[edges[i * m]] == "property"}
    return texts, properties, {strings[nodes[i + 1]] for i in range(0, len(nodes), n) if node_types[nodes[i]] == "synthetic"}


def classes(*args):
    rows = map(json.loads, heap("--json", "-n", "1000000", "--retained", *args).splitlines())
    sums = {}
    for r in rows:
        if r["type"] == "class":
            sums[r["class"]] = tuple(a + b for a, b in zip(sums.get(r["class"], (0, 0, 0)), (r["retained"], r["objects"], r["bytes"])))
    return sums


def compare(where, name, field, prefix):
    path = os.path.join(TMP, "x.heapsnapshot")
    was = classes("-o", path, *where)  # of the graph that is written
    check(os.stat(path).st_mode & 0o777 == 0o600, name, "others cannot read it", oct(os.stat(path).st_mode))
    texts, properties, kinds = strict(path, name)
    now = classes(path)
    for c in kinds | {"class 0x900000001"}:  # nodes that are no objects
        if c not in was:
            now.pop(c, None)
        elif c in now and was[c][2] == now[c][2]:
            now[c] = was[c]
    check(len(was) > 50 and was == now, name, "retained sizes", [(c, was.get(c), now.get(c)) for c in was.keys() | now.keys() if was.get(c) != now.get(c)][:10])
    check(was[prefix + "Kept"][1] == 500, name, "objects", was.get(prefix + "Kept"))
    check(field in properties, name, "names of references", sorted(properties)[:100])
    os.unlink(path)
    return texts


for name, (runs, source, field) in PROGRAMS.items():
    if not runs or not os.path.exists(runs) or (name == "java" and not shutil.which("javac")):
        continue
    path, own = os.path.join(TMP, "Export.java" if name == "java" else "export"), os.path.join(TMP, "own.heapsnapshot")
    with open(path, "w") as f:
        f.write(source)
    argv = [runs, path, own]
    if name == "java":
        subprocess.run(["javac", "--release", "17", "-d", TMP, path], check=True)
        argv = [runs, "-Xmx64m", "-cp", TMP, "Export"]
    p = kill_at_end(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", name, "did not start")
    texts = compare(("-p", str(p.pid)), name, field, "Export$" if name == "java" else "")
    if name == "node":
        check({"kept \u017c %d" % i for i in range(500)} | {'"%d' % i for i in range(500)} <= set(texts), name, "texts of strings")
        p.send_signal(signal.SIGUSR2)
        check(p.stdout.readline() == "written\n", "no snapshot")
        compare((own,), "V8's own", field, "")
    p.kill()
    p.wait()
done()
