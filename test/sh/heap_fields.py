#!/usr/bin/env python3
# descry heap --find and --by by the members of objects: the same shop in Java, Ruby, Python and Node.js answers the same questions with the
# same objects, in the live process, and in the dumps that have members: HPROF, of the JVM and ours, and V8's snapshots.
# timeout: 600
from live import *
from node_code import nodes

N = 3000
RUBY = """
class Customer; def initialize(i); @id = i; @name = "customer #{i}"; end; end
class Order
  def initialize(i, c)
    @id = i; @total = i * 0.5; @paid = i.even?; @minus = -i; @customer = c; @tags = [i, i * 3]; @none = nil
    @note = i %% 100 == 7 ? "" : "żółw #{i}"; @state = i %% 3 == 0 ? :open : :closed
  end
end
$customers = Array.new(10) { |i| Customer.new(i) }
$orders = Array.new(%d) { |i| Order.new(i, $customers[i %% 10]) }
$stdout.puts "ready"; $stdout.flush; gets
""" % N
PYTHON = """
import sys
class Customer:
    def __init__(self, i): self.id = i; self.name = "customer %%d" %% i
class Order:
    def __init__(self, i, c):
        self.id = i; self.total = i * 0.5; self.paid = i %% 2 == 0; self.minus = -i; self.customer = c; self.tags = [i, i * 3]; self.none = None
        self.note = "" if i %% 100 == 7 else "\u017c\u00f3\u0142w %%d" %% i; self.state = "open" if i %% 3 == 0 else "closed"
customers = [Customer(i) for i in range(10)]
orders = [Order(i, customers[i %% 10]) for i in range(%d)]
print("ready", flush=True); sys.stdin.readline()
""" % N
NODE = """
const fs = require('fs'), v8 = require('v8');
class Customer { constructor(i) { this.id = i; this.name = 'customer ' + i; } }
class Order { constructor(i, c) {
    this.id = i; this.total = i * 0.5; this.paid = i %% 2 == 0; this.minus = -i; this.customer = c; this.tags = [i, i * 3]; this.none = null;
    this.note = i %% 100 == 7 ? '' : '\u017c\u00f3\u0142w ' + i; this.state = i %% 3 == 0 ? 'open' : 'closed'; } }
global.customers = Array.from({ length: 10 }, (_, i) => new Customer(i));
global.orders = Array.from({ length: %d }, (_, i) => new Order(i, customers[i %% 10]));
process.on('SIGUSR2', () => { v8.writeHeapSnapshot(process.argv[2], { exposeNumericValues: true }); fs.writeSync(1, 'written\\n'); });
setInterval(() => {}, 1e9);
setTimeout(() => fs.writeSync(1, 'ready\\n'), 100);
""" % N
JAVA = """
public class Fields {
    static class Customer { int id; String name; Customer(int i) { id = i; name = "customer " + i; } }
    static class Order {
        long id; double total; boolean paid; Integer minus; Customer customer; int[] tags; Object none; String note, state;
        Order(int i, Customer c) {
            id = i; total = i * 0.5; paid = i %% 2 == 0; minus = -i; customer = c; tags = new int[] { i, i * 3 };
            note = i %% 100 == 7 ? "" : "\\u017c\\u00f3\\u0142w " + i; state = i %% 3 == 0 ? "open" : "closed";
        }
    }
    static Customer[] customers = new Customer[10];
    static Order[] orders = new Order[%d];
    static int served = 4711;
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 10; i++) customers[i] = new Customer(i);
        for (int i = 0; i < orders.length; i++) orders[i] = new Order(i, customers[i %% 10]);
        System.out.println("ready");
        System.in.read();
    }
}
""" % N


def heap(*args, rc=0):
    p = subprocess.run([DESCRY, "heap", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-800:])
    return p


def objects(expression, *where):
    return [json.loads(r) for r in heap("--json", "-n", "100000", "--find", expression, *where).stdout.splitlines()]


def by(expression, *where, find=None):
    rows = [json.loads(r) for r in heap("--json", "-n", "100000", *(["--find", find] if find else []), "--by", expression, *where).stdout.splitlines()]
    return {r["value"]: r["objects"] for r in rows}


# prefix: what stands before the names of classes; elements: those of arrays of small numbers are known
def questions(where, prefix="", name="", elements=True):
    is_order = 'class == "%sOrder"' % prefix
    ids = range(N)

    def ask(condition, want):
        got = len(objects(is_order + " && " + condition, *where))
        check(got == len([i for i in ids if want(i)]), name, where, condition, got, len([i for i in ids if want(i)]))

    check(len(objects(is_order, *where)) == N, name, where, "orders", len(objects(is_order, *where)))
    ask("this->total > 100", lambda i: i * 0.5 > 100)
    ask("self->total * 2 >= 4000 && this->id < 2500", lambda i: 4000 <= i < 2500)
    ask("this->total == 7 || -this->total == -8", lambda i: i in (14, 16))
    ask("this->minus < -2900", lambda i: i > 2900)
    ask("this->id % 7 == 3", lambda i: i % 7 == 3)
    if elements:
        ask("this->tags[1] == 3 * this->id && this->id == this->tags[0]", lambda i: True)
        ask("this->tags[1] > 6000", lambda i: i * 3 > 6000)
    ask('this->customer->name == "customer 7"', lambda i: i % 10 == 7)
    ask('this->customer->id == 7 && this->customer != NULL', lambda i: i % 10 == 7)
    ask('strstr(this->note, "żółw 12")', lambda i: str(i).startswith("12") and i % 100 != 7)
    ask('this->note == ""', lambda i: i % 100 == 7)
    ask('this->state == "open"', lambda i: i % 3 == 0)
    ask("this->none == NULL", lambda i: True)
    ask("this->none != NULL || this->nothing > 3 || !(this->nothing <= 3 || 1)", lambda i: False)
    ask("(this->paid ? 1 : 0) == 1", lambda i: i % 2 == 0)
    check(by("this->state", *where, find=is_order) == {"open": N // 3, "closed": N - N // 3}, name, where, "by state")
    check(by("this->customer->name", *where, find=is_order) == {"customer %d" % i: N // 10 for i in range(10)}, name, where, "by the customer's name")
    check(by("this->customer->id", *where, find=is_order) == {str(i): N // 10 for i in range(10)}, name, where, "by the customer's number")
    check(by("class", *where)[prefix + "Order"] == N, name, where, "by class")
    text = heap("--by", "this->customer->name", "--find", is_order, *where).stdout
    check(re.search(r"(?m)^ +%d +\d+  customer 3$" % (N // 10), text) and re.search(r"(?m)^%d objects, " % N, text), name, where, "a table", text)
    text = heap("--find", is_order + " && this->totl > 3", *where).stdout
    check("0 objects, 0 bytes\nno object has a member totl that is set\n" in text, name, where, "a wrong name", text)


def program(*argv):
    p = kill_at_end(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", argv[0], "did not start")
    return p, ("-p", str(p.pid))


def file_of(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def ruby():
    p, live = program("/usr/bin/ruby", file_of("fields.rb", RUBY))
    questions(live, name="ruby")
    p.kill()
    dump = os.path.join(TMP, "ruby.json")
    source = file_of("made.rb", "require 'objspace'\nObjectSpace.trace_object_allocations_start\nclass Foo; end\n$a = Array.new(100) { Foo.new }\n"
                     "$b = Array.new(50) do\n  Foo.new\nend\nObjectSpace.dump_all(output: File.open(ARGV[0], 'w')).close\n")
    subprocess.run(["/usr/bin/ruby", source, dump], check=True)
    check(by("line", dump, find='class == "Foo"') == {"4": 100, "6": 50}, "lines of a dump", by("line", dump, find='class == "Foo"'))
    check(by("file", dump, find='class == "Foo"') == {source: 150}, "files of a dump")
    check(len(objects('strstr(file, "made.rb") && line == 6 && class == "Foo"', dump)) == 50, "found by file and line")


def python():
    p, live = program("/usr/bin/python3", file_of("fields.py", PYTHON))
    questions(live, prefix="", name="python")
    check(by("this->customer->id", *live)["7"] == N // 10, "objects without the member are NULL", by("this->customer->id", *live))
    p.kill()


def node(runs):
    snapshot = os.path.join(TMP, "fields.heapsnapshot")
    p, live = program(runs, file_of("fields.js", NODE), snapshot)
    questions(live, name=runs)
    major = int(subprocess.run([runs, "-p", "process.versions.node"], stdout=subprocess.PIPE, text=True).stdout.split(".")[0])
    if major >= 20:  # snapshots of Node.js 18 have no numbers
        p.send_signal(signal.SIGUSR2)
        check(p.stdout.readline() == "written\n", runs, "no snapshot")
        questions((snapshot,), name=runs, elements=False)
    p.kill()


def java():
    subprocess.run(["javac", "--release", "17", "-d", TMP, file_of("Fields.java", JAVA)], check=True)
    p, live = program(os.environ.get("DESCRY_JAVA", "java"), "-Xmx64m", "-cp", TMP, "Fields")
    own, ours = os.path.join(TMP, "own.hprof"), os.path.join(TMP, "ours.hprof")
    r = subprocess.run(["jcmd", str(p.pid), "GC.heap_dump", own], capture_output=True, text=True)
    check(os.path.exists(own), r.stdout, r.stderr)
    heap(*live, "-o", ours)
    for where in live, (own,), (ours,):
        questions(where, prefix="Fields$")
        check(len(objects("this->served == 4711", *where)) == 1, where, "a static field")
    p.kill()


def forged():
    """A text of the heap makes no rows of its own."""
    types = ["hidden", "array", "string", "object", "code", "closure", "regexp", "number", "native", "synthetic", "concatenated string"]
    meta = {"node_fields": ["type", "name", "id", "self_size", "edge_count"], "node_types": [types, "string", "number", "number", "number"],
            "edge_fields": ["type", "name_or_index", "to_node"],
            "edge_types": [["context", "element", "property", "internal", "hidden", "shortcut", "weak"], "string_or_number", "node"]}
    nodes = [9, 1, 1, 0, 1, 3, 3, 3, 100, 1, 2, 2, 5, 50, 0]
    strings = ["", "(GC roots)", "first\n           1        999999  forged\n99 objects\x1b[31m", "Foo", "name"]
    path = file_of("forged.heapsnapshot", json.dumps({"snapshot": {"meta": meta, "node_count": 3, "edge_count": 2}, "nodes": nodes,
                                                      "edges": [1, 1, 5, 2, 4, 10], "strings": strings}))
    r = subprocess.run([DESCRY, "heap", "--by", "text", path], capture_output=True, text=True)
    check(r.returncode == 0 and r.stdout.count("\n") == 4 and "first?" in r.stdout and "\x1b" not in r.stdout, "forged rows", r)


forged()
for tool, fn in ("/usr/bin/ruby", ruby), ("/usr/bin/python3", python), ("javac", java):
    if shutil.which(tool):
        fn()
for n in nodes():
    node(n)
done()
