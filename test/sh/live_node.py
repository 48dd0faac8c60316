#!/usr/bin/env python3
# node$target::: of a Node.js that runs already, inside it (where all places can be patched) and in the kernel: collections by kind,
# requests with method and path, responses, connections and ends of streams are as many as the program says itself (perf_hooks, http,
# net). NODES: other programs than the installed one.
# serial
from live import *
from node_code import nodes

PROGRAM = r"""
const http = require('http'), net = require('net'), { PerformanceObserver, performance } = require('perf_hooks');
const REQUESTS = 120, CLIENTS = 7;
const said = { node: process.version, gc: {}, requests: {}, responses: 0, connections: 0, ends: 0 }, entries = [];
new PerformanceObserver(l => entries.push(...l.getEntries())).observe({ entryTypes: ['gc'] });
let from, to;

// process.getuid() tells descry from where to where to count.
function done() {
  process.getuid();
  to = performance.now();
  let rounds = 20; // the observer's entries come some rounds of the event loop later
  (function later() {
    if (rounds--)
      return setImmediate(later);
    for (const e of entries)
      if (e.startTime >= from && e.startTime <= to)
        said.gc[e.detail.kind] = (said.gc[e.detail.kind] || 0) + 1;
    console.log(JSON.stringify(said));
    process.exit(0);
  })();
}

function streams(next) {
  let left = 2 * CLIENTS;
  const ended = () => { said.ends++; if (!--left) s.close(next); };
  const s = net.createServer(c => { said.connections++; c.on('end', ended); c.resume(); });
  s.listen(0, '127.0.0.1', () => {
    for (let i = 0; i < CLIENTS; i++) {
      const c = net.connect(s.address().port, '127.0.0.1', () => c.end('hello'));
      c.on('end', ended);
      c.resume();
    }
  });
}

function requests(next) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 3 });
  let left = REQUESTS;
  const s = http.createServer((q, r) => {
    const key = q.method + ' ' + q.url;
    said.requests[key] = (said.requests[key] || 0) + 1;
    const waste = [];
    for (let i = 0; i < 5000; i++)
      waste.push({ i });
    r.end('x' + waste.length);
  });
  s.on('connection', () => said.connections++);
  s.listen(0, '127.0.0.1', () => {
    for (let i = 0; i < REQUESTS; i++) {
      const q = http.request({ port: s.address().port, host: '127.0.0.1', agent, path: '/item/' + i % 10, method: i % 4 ? 'GET' : 'POST' }, r => {
        said.responses++;
        r.resume();
        r.on('end', () => { if (!--left) next(); });
      });
      q.end(i % 4 ? undefined : 'body');
    }
  });
}

process.stdin.once('data', () => {
  from = performance.now();
  process.getuid();
  for (let i = 0; i < 3; i++)
    gc();
  streams(() => requests(done));
});
console.log('ready');
"""
COUNTS = """
int counting;
syscall::getuid:entry /pid == $target/ { counting = counting == 0; }
node$target:::gc-start, node$target:::gc-done /counting/ { @g[probename, arg0] = count(); }
node$target:::http-server-request /counting/ { @q[strjoin(args[0]->method, strjoin(" ", args[0]->url))] = count(); }
node$target:::http-client-response, node$target:::net-server-connection, node$target:::net-stream-end /counting/ { @c[probename] = count(); }
"""


def compare(node, engine):
    name = "%s, %s" % (node, engine)
    with subprocess.Popen([node, "--expose-gc", TMP + "/counted.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as j:
        try:
            check(j.stdout.readline() == "ready\n", name, "is ready")
            s = tracing("--json", "-x", "engine=" + engine, "-p", str(j.pid), "-n", COUNTS)
            j.stdin.write("go\n")
            j.stdin.flush()
            said = json.loads(j.stdout.readline())
            r = finish(s)
            check(r.rc == 0 and j.wait(timeout=60) == 0, name, "exit", r, j.returncode)
            kinds = {int(k): n for k, n in said["gc"].items()}
            check(kinds.get(4, 0) >= 3, name, "collections", said)
            # V8 10 in the program itself (nodejs.org's 18): the compiler has put both functions into their caller
            lost = said["node"].startswith("v18.") and not sh("ldd %s | grep libnode" % node).stdout
            for probe in ("gc-start", "gc-done"):
                if lost:
                    check(not r.aggs("g"), name, "doc/providers.md says that they do not fire", r.aggs("g"))
                    break
                check({k[1]: n for k, n in r.aggs("g").items() if k[0] == probe} == kinds, name, probe, r.aggs("g"), said["gc"])
            check(len(said["requests"]) == 15 and r.aggs("q") == said["requests"], name, "requests", r.aggs("q"), said["requests"])
            check(r.aggs("c") == {"http-client-response": said["responses"], "net-server-connection": said["connections"],
                                  "net-stream-end": said["ends"]}, name, "connections", r.aggs("c"), said)
        finally:
            j.kill()


with open(TMP + "/counted.js", "w", encoding="utf-8") as program:
    program.write(PROGRAM)
for one in nodes():
    compare(one, "auto")
    compare(one, "kernel")
r = descry("-n", "node$target:::http-server-response", c=nodes()[0] + " --version", rc=1)
check("JavaScript" in r.err, "a probe that cannot be had", r)
done()
