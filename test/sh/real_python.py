"""Programs of stack_python.py that do what real ones do: a web application under load, with a database and templates; asyncio servers and
clients; and the tools of the standard library over its own sources. faulthandler says the frames of a thread at SIGUSR1."""

BEGIN = r"""
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, file=open(sys.argv[1], "w"), all_threads=False, chain=False)
"""

WEB = BEGIN + r"""
import http.server, html, json, logging, socketserver, sqlite3, string, threading, urllib.parse, urllib.request
lock = threading.Lock()
base = sqlite3.connect(":memory:", check_same_thread=False)
base.create_function("grade", 1, lambda n: "abcdef"[n % 6])
base.execute("create table orders (id integer primary key, name text, total real)")
base.executemany("insert into orders (name, total) values (?, ?)", [("name %d" % (i % 37), i * 1.5) for i in range(500)])
page = string.Template("<li>$name <b>$total</b> $grade</li>")


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, text, *args):
        logging.getLogger("web").debug(text, *args)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        with lock:
            rows = base.execute("select name, sum(total), grade(count(*)) from orders where id > ? group by name", (int(query["after"][0]),)).fetchall()
        if "json" in query:
            body = json.dumps([dict(zip(("name", "total", "grade"), row)) for row in rows], indent=1)
        else:
            body = "".join(page.substitute(name=html.escape(name), total="%.2f" % total, grade=grade) for name, total, grade in sorted(rows, key=lambda r: -r[1]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True


def client():
    n = 0
    while True:
        n += 1
        url = "http://127.0.0.1:%d/orders?after=%d%s" % (server.server_port, n % 400, "&json=1" if n % 2 else "")
        with urllib.request.urlopen(url) as answer:
            answer.read()


for _ in range(2):
    threading.Thread(target=client, daemon=True).start()
print("ready", flush=True)
server.serve_forever()
"""

STREAMS = BEGIN + r"""
import asyncio, hashlib, json


async def serve(reader, writer):
    while True:
        line = await reader.readline()
        if not line:
            break
        asked = json.loads(line)
        async with limit:
            answer = [hashlib.sha256(("%s %d" % (asked["name"], i)).encode()).hexdigest() async for i in numbers(asked["n"])]
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()


async def numbers(n):
    for i in range(n):
        if i % 8 == 0:
            await asyncio.sleep(0)
        yield i


async def client(port, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(json.dumps({"name": name, "n": 20}).encode() + b"\n")
        answer = json.loads(await asyncio.wait_for(reader.readline(), 30))
        assert len({x[:8] for x in answer}) == 20


async def main():
    global limit
    limit = asyncio.Semaphore(3)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("ready", flush=True)
    await asyncio.gather(*(client(port, "client %d" % i) for i in range(4)))

asyncio.run(main())
"""

LIBRARY = BEGIN + r"""
import ast, collections, csv, dataclasses, decimal, difflib, glob, io, itertools, os, re, textwrap, tokenize, unittest
sources = sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:60]


@dataclasses.dataclass(order=True)
class Word:
    count: int
    text: str = dataclasses.field(compare=False)


class Names(ast.NodeVisitor):
    def __init__(self):
        self.found = collections.Counter()

    def visit_Name(self, node):
        self.found[node.id] += 1
        self.generic_visit(node)


class Case(unittest.TestCase):
    def run_one(self, path):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()[:20000]
        text = text[:text.rfind("\n\n") + 1]
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        names = Names()
        names.visit(tree)
        words = sorted(Word(n, w) for w, n in names.found.items())
        out = io.StringIO()
        csv.writer(out).writerows(dataclasses.astuple(w) for w in words)
        self.assertEqual(len(list(csv.reader(out.getvalue().splitlines()))), len(words))
        lines = text.splitlines()[:120]
        changed = [re.sub(r"\bself\b", lambda m: m.group().upper(), line) for line in lines]
        self.assertTrue(list(difflib.unified_diff(lines, changed, lineterm="")) or True)
        textwrap.fill(" ".join(w.text for w in words), 60)
        with decimal.localcontext() as context:
            context.prec = 40
            sum((decimal.Decimal(w.count).sqrt() for w in words), decimal.Decimal(0))

    def test_all(self):
        for path in sources:
            with self.subTest(path=path):
                self.run_one(path)


print("ready", flush=True)
while True:
    unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(Case))
"""

PROGRAMS = {"web.py": WEB, "streams.py": STREAMS, "library.py": LIBRARY}
