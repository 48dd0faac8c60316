"""Programs of stack_node_real.py that do what real ones do: an HTTP server with worker threads and its clients, a build that parses, walks
and prints the sources of Node.js by its own copy of the package acorn, and a batch of npm's packages. An addon in C has V8 itself say the
frames of a thread: at random moments, at the next place where V8 lets itself be interrupted (stack_node_real.py), or by V8's profiler, at the
instruction that a signal interrupts (stack_node_ticks.py)."""

# Without headers: N-API's functions, and V8's exported functions by their names in C++. dlsym() finds them, since some versions lack some.
ADDON = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
enum { ISOLATES = 4, FRAMES = 200, DETAILED = 0x17f, TEXT = 4096 };
struct isolate {
	void *isolate, *env, *profiler;
	int tid;
	atomic_int asked;
};
struct tick {
	int line;
	unsigned n;
};
static struct isolate isolates[ISOLATES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int serial;
static int file = -1, count, stops, profiles;
volatile int truth_last;

static void *(*v8_current)(void);
static void (*v8_interrupt)(void *isolate, void (*)(void *, void *), void *arg);
static void *(*v8_trace)(void *isolate, int limit, int options);
static int (*v8_frames)(void *trace);
static void *(*v8_frame)(void *trace, void *isolate, uint32_t i);
static void *(*v8_name)(void *frame), *(*v8_file)(void *frame);
static uint64_t (*v8_location)(void *frame);
static int (*v8_line)(void *frame);
/* The profiler. */
static void (*v8_detailed)(void *isolate);
static void *(*v8_profiler)(void *isolate, int naming, int logging);
static void (*v8_every)(void *profiler, int us);
static int (*v8_start)(void *profiler, void *title, int mode, int samples, unsigned max);
static void *(*v8_stop)(void *profiler, void *title);
static int (*v8_count)(void *profile);
static void *(*v8_sample)(void *profile, int i), *(*v8_parent)(void *node);
static int64_t (*v8_time)(void *profile, int i);
static const char *(*v8_node_name)(void *node), *(*v8_node_file)(void *node);
static int (*v8_node_line)(void *node);
static unsigned (*v8_node_lines)(void *node);
static int (*v8_ticks)(void *node, struct tick *ticks, unsigned n);
static int (*napi_string)(void *env, const char *text, size_t n, void **ret);
static int (*napi_text)(void *env, void *value, char *buf, size_t size, size_t *n);
static int (*napi_at_end)(void *env, void (*)(void *), void *arg);

/* descry has probes on these two. */
__attribute__((noinline)) void truth_now(int n)
{
	truth_last = n;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void truth_end(int n)
{
	truth_last = -n;
	__asm__ volatile("" ::: "memory");
}

static void put_text(FILE *f, void *env, void *string, char end)
{
	char text[TEXT] = "";
	size_t n;
	if (string)
		napi_text(env, string, text, sizeof(text), &n);
	for (char *c = text; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
	fprintf(f, "%s%c", text, end);
}

static int line_of(void *frame)
{
	return v8_location ? (int32_t)v8_location(frame) + 1 : v8_line(frame);
}

/* V8 calls this in the isolate's thread. */
static void say(void *isolate, void *arg)
{
	struct isolate *s = arg;
	int n = ++serial;
	char *text;
	size_t size;
	if (n > count)
		return;
	FILE *f = open_memstream(&text, &size);
	fprintf(f, "stack %d %d\n", n, gettid());
	void *trace = v8_trace(isolate, FRAMES, DETAILED);
	for (int i = 0; i < v8_frames(trace); i++) {
		void *frame = v8_frame(trace, isolate, i);
		put_text(f, s->env, v8_name(frame), '\t');
		put_text(f, s->env, v8_file(frame), '\t');
		fprintf(f, "%d\n", line_of(frame));
	}
	fprintf(f, "end\n");
	fclose(f);
	truth_now(n);
	if (write(file, text, size) < 0)
		abort();
	free(text);
	if (stops)
		raise(SIGSTOP); /* this thread goes no further */
	s->asked = 0;
	if (n == count)
		truth_end(n);
}

/* --- the profiler: see stack_node_ticks.py --- */

static void *title(struct isolate *s)
{
	void *string;
	napi_string(s->env, "truth", 5, &string);
	return string;
}

static void begin_profile(void *isolate, void *arg)
{
	struct isolate *s = arg;
	s->profiler = v8_profiler(isolate, 1 /* names as in stack traces */, 0);
	v8_every(s->profiler, 2000);
	v8_start(s->profiler, title(s), 1 /* lines of calls */, 1, 1 << 20);
	s->asked = 0;
}

/* A row for each frame, innermost first. A node's line is that of the call in the node's parent. Of the innermost function, all lines in
 * which there were samples are known. */
static void put_sample(FILE *f, void *profile, int i, int tid)
{
	int line = -1;
	fprintf(f, "sample %d %lld\n", tid, (long long)v8_time(profile, i));
	for (void *node = v8_sample(profile, i); node; node = v8_parent(node)) {
		unsigned n = line < 0 ? v8_node_lines(node) : 0;
		struct tick ticks[n + 1];
		fprintf(f, "%s\t%s\t%d", v8_node_name(node), v8_node_file(node), line < 0 ? 0 : line);
		if (n && v8_ticks(node, ticks, n))
			for (unsigned k = 0; k < n; k++)
				fprintf(f, "\t%d", ticks[k].line);
		fprintf(f, "\n");
		line = v8_node_line(node);
	}
	fprintf(f, "end\n");
}

static void end_profile(void *isolate, void *arg)
{
	(void)isolate;
	struct isolate *s = arg;
	void *profile = v8_stop(s->profiler, title(s));
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	for (int i = 0; i < v8_count(profile); i++)
		put_sample(f, profile, i, s->tid);
	fclose(f);
	for (size_t done = 0; done < size;) {
		ssize_t n = write(file, text + done, size - done);
		if (n <= 0)
			abort();
		done += n;
	}
	free(text);
	s->profiler = NULL;
	s->asked = 0;
}

static void ask_all(void (*f)(void *, void *))
{
	for (int i = 0; i < ISOLATES; i++) {
		struct isolate *s = &isolates[i];
		if (!s->isolate)
			continue;
		s->asked = 1;
		v8_interrupt(s->isolate, f, s);
		while (s->asked)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* Profiles as long as the file of that name exists. */
static void profile(const char *go)
{
	struct stat st;
	ask_all(begin_profile);
	while (!stat(go, &st))
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	ask_all(end_profile);
	truth_end(0);
}

static int asked(void)
{
	int n = 0;
	for (int i = 0; i < ISOLATES; i++)
		n += isolates[i].isolate && isolates[i].asked;
	return n;
}

static int runs(int tid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *end = n > 0 ? strrchr(text, ')') : NULL;
	close(fd);
	return end && end[2] == 'R';
}

/* Asks threads that run, at random moments, from the time on when the file of that name exists. A thread that waits would only tell of the
 * function with which it goes on. */
static void *ask(void *go)
{
	struct stat st;
	while (stat(go, &st))
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	if (profiles) {
		profile(go);
		return NULL;
	}
	while (serial < count) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000 + rand() % 1500000 }, NULL);
		pthread_mutex_lock(&lock);
		struct isolate *s = &isolates[rand() % ISOLATES];
		if (s->isolate && !s->asked && (!stops || !asked()) && runs(s->tid)) {
			s->asked = 1;
			v8_interrupt(s->isolate, say, s);
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void forget(void *arg)
{
	pthread_mutex_lock(&lock);
	((struct isolate *)arg)->isolate = NULL;
	pthread_mutex_unlock(&lock);
}

static void *function(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static void begin(void)
{
	pthread_t thread;
	const char *path = getenv("TRUTH_FILE");
	v8_current = function("_ZN2v87Isolate10GetCurrentEv");
	v8_interrupt = function("_ZN2v87Isolate16RequestInterruptEPFvPS0_PvES2_");
	v8_trace = function("_ZN2v810StackTrace17CurrentStackTraceEPNS_7IsolateEiNS0_17StackTraceOptionsE");
	v8_frames = function("_ZNK2v810StackTrace13GetFrameCountEv");
	v8_frame = function("_ZNK2v810StackTrace8GetFrameEPNS_7IsolateEj");
	v8_name = function("_ZNK2v810StackFrame15GetFunctionNameEv");
	v8_file = function("_ZNK2v810StackFrame24GetScriptNameOrSourceURLEv");
	v8_location = function("_ZNK2v810StackFrame11GetLocationEv");
	v8_line = function("_ZNK2v810StackFrame13GetLineNumberEv");
	v8_detailed = function("_ZN2v811CpuProfiler38UseDetailedSourcePositionsForProfilingEPNS_7IsolateE");
	v8_profiler = function("_ZN2v811CpuProfiler3NewEPNS_7IsolateENS_22CpuProfilingNamingModeENS_23CpuProfilingLoggingModeE");
	v8_every = function("_ZN2v811CpuProfiler19SetSamplingIntervalEi");
	v8_start = function("_ZN2v811CpuProfiler14StartProfilingENS_5LocalINS_6StringEEENS_16CpuProfilingModeEbj");
	v8_stop = function("_ZN2v811CpuProfiler13StopProfilingENS_5LocalINS_6StringEEE");
	v8_count = function("_ZNK2v810CpuProfile15GetSamplesCountEv");
	v8_sample = function("_ZNK2v810CpuProfile9GetSampleEi");
	v8_time = function("_ZNK2v810CpuProfile18GetSampleTimestampEi");
	v8_parent = function("_ZNK2v814CpuProfileNode9GetParentEv");
	v8_node_name = function("_ZNK2v814CpuProfileNode18GetFunctionNameStrEv");
	v8_node_file = function("_ZNK2v814CpuProfileNode24GetScriptResourceNameStrEv");
	v8_node_line = function("_ZNK2v814CpuProfileNode13GetLineNumberEv");
	v8_node_lines = function("_ZNK2v814CpuProfileNode15GetHitLineCountEv");
	v8_ticks = function("_ZNK2v814CpuProfileNode12GetLineTicksEPNS0_8LineTickEj");
	napi_string = function("napi_create_string_utf8");
	napi_text = function("napi_get_value_string_utf8");
	napi_at_end = function("napi_add_env_cleanup_hook");
	if (!v8_current || !v8_interrupt || !v8_trace || !v8_frames || !v8_frame || !v8_name || !v8_file || !(v8_location || v8_line) || !napi_text || !napi_at_end) {
		fprintf(stderr, "a function of V8 is not exported\n");
		exit(77);
	}
	count = atoi(getenv("TRUTH_COUNT"));
	stops = getenv("TRUTH_STOPS") != NULL;
	profiles = getenv("TRUTH_PROFILES") != NULL;
	if (profiles && (!v8_detailed || !v8_profiler || !v8_every || !v8_start || !v8_stop || !v8_count || !v8_sample || !v8_time || !v8_parent || !v8_node_name || !v8_node_file || !v8_node_line || !v8_node_lines || !v8_ticks || !napi_string)) {
		fprintf(stderr, "a function of V8's profiler is not exported\n");
		exit(77);
	}
	file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	pthread_create(&thread, NULL, ask, getenv("TRUTH_GO"));
}

/* In each thread that loads the addon. */
void *napi_register_module_v1(void *env, void *exports)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, begin);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ISOLATES; i++)
		if (!isolates[i].isolate) {
			isolates[i].isolate = v8_current();
			isolates[i].env = env;
			isolates[i].asked = 0;
			isolates[i].tid = gettid();
			if (profiles)
				v8_detailed(isolates[i].isolate);
			napi_at_end(env, forget, &isolates[i]);
			break;
		}
	pthread_mutex_unlock(&lock);
	return exports;
}
"""

WEB = r"""'use strict';
require(process.env.TRUTH);
const http = require('http'), zlib = require('zlib'), crypto = require('crypto'), util = require('util'), { EventEmitter } = require('events');
const { Worker, isMainThread, parentPort } = require('worker_threads'), { Readable, Transform, pipeline } = require('stream');
const WORDS = 'the quick brown fox jumps over a lazy dog while seven small boats sail past the old harbour wall'.split(' ');
let state = 12345;

function random(n) {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return state % n;
}

class Order {
    #total;
    static made = 0;
    static { Order.made = 0; }
    constructor(id, name, total) {
        this.id = id;
        this.name = name;
        this.#total = total;
        this.lines = Array.from({ length: 1 + id % 4 }, (_, i) => ({ sku: name + i, n: i + 1 }));
        Order.made++;
    }
    get total() { return this.#total + this.#tax(0.19); }
    set discount(d) { this.#total -= d; }
    #tax(rate) { return Math.round(this.#total * rate * 100) / 100; }
    *[Symbol.iterator]() {
        for (const line of this.lines)
            yield line;
    }
    html() {
        return `<li>${escapeText(this.name)} <b>${this.total.toFixed(2)}</b>${[...this].map((l) => l.sku).join()}</li>`;
    }
    toJSON() { return { id: this.id, name: this.name, total: this.total, lines: [...this] }; }
    static compare(a, b) { return b.total - a.total || a.id - b.id; }
    [Symbol.toPrimitive](hint) { return hint === 'number' ? this.total : this.name; }
}

class Special extends Order {
    constructor(...args) { super(...args); this.kind = 'special'; }
    html() { return super.html().replace(/<li>/g, (m) => m.replace('>', ' class="special">')); }
    get total() { return super.total * 0.9; }
}

function escapeText(s) {
    return String(s).replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');
}

const orders = Array.from({ length: 200 }, (_, i) => new (i % 5 ? Order : Special)(i, WORDS[i % WORDS.length] + ' & ' + i, i * 1.5));
const byId = new Map(orders.map((o) => [o.id, o]));
const logged = new Proxy({ hits: 0 }, { get(t, k) { return Reflect.get(t, k); }, set(t, k, v) { t[k] = v; return true; } });

const database = {
    async find(id) {
        await null;
        return byId.get(id) ?? raise(new RangeError('no order ' + id));
    },
    async *scan(n) {
        for (let i = 0; i < n; i++)
            yield await this.find(i);
    },
    index: new Map(),
};

function raise(e) {
    throw e;
}

class Parser {
    constructor(text) { this.tokens = text.match(/\d+|[-+*/()]/g); this.at = 0; }
    take(t) { return this.tokens[this.at] === t && ++this.at; }
    sum() {
        let left = this.product();
        for (;;)
            if (this.take('+')) left += this.product();
            else if (this.take('-')) left -= this.product();
            else return left;
    }
    product() {
        let left = this.factor();
        for (;;)
            if (this.take('*')) left *= this.factor();
            else if (this.take('/')) left /= this.factor() || raise(new Error('division by zero'));
            else return left;
    }
    factor() {
        if (!this.take('('))
            return +this.tokens[this.at++];
        const value = this.sum();
        if (!this.take(')'))
            throw new SyntaxError('a ) is missing at ' + this.at);
        return value;
    }
}

function expression(depth) {
    if (depth === 0)
        return String(random(9));
    const op = '+-*/'[random(4)];
    return `(${expression(depth - 1)}${op}${random(2) ? expression(depth - 1) : random(9)})`;
}

class Node {
    constructor(key) { this.key = key; this.left = this.right = null; }
    insert(key) {
        const side = key < this.key ? 'left' : 'right';
        if (this[side]) this[side].insert(key);
        else this[side] = new Node(key);
    }
    *walk() {
        if (this.left) yield* this.left.walk();
        yield this.key;
        if (this.right) yield* this.right.walk();
    }
    fold(f, start) {
        const left = this.left ? this.left.fold(f, start) : start;
        const here = f(left, this.key);
        return this.right ? this.right.fold(f, here) : here;
    }
}

const mix = (a, b) => Math.imul(a ^ b, 0x9e3779b1) >>> 0;
function hashOf(s) {
    let h = 0;
    for (let i = 0; i < s.length; i++)
        h = mix(h, s.charCodeAt(i));
    return h;
}

const pages = {
    html: async () => {
        const some = [];
        for await (const o of database.scan(40))
            some.push(o);
        return some.sort(Order.compare).map((o) => o.html()).join('\n');
    },
    json: async (q) => {
        const text = JSON.stringify(orders.slice(0, 60), (k, v) => typeof v === 'number' ? Math.round(v) : v);
        const back = JSON.parse(text, function revive(k, v) { return k === 'name' ? v.toUpperCase() : v; });
        return JSON.stringify(back.filter(({ id }) => id % 2 === +q.get('odd')));
    },
    zip: async () => {
        const text = Buffer.from(orders.map(String).join('\n').repeat(4));
        const packed = await util.promisify(zlib.gzip)(text);
        const again = zlib.gunzipSync(packed);
        return again.equals(text) ? zlib.deflateRawSync(again, { level: 9 }).toString('base64') : raise(new Error('unlike'));
    },
    sums: async () => {
        let text = '';
        for (let i = 0; i < 25; i++) {
            const e = expression(4);
            try {
                text += e + '=' + new Parser(random(8) ? e : e + '+(1').sum() + '\n';
            } catch (error) {
                text += error.message + error.stack.length + '\n';
            } finally {
                logged.hits++;
            }
        }
        return text;
    },
    words: async () => {
        const counts = new Map(), text = WORDS.join(' ').repeat(8);
        text.replace(/(?<first>\w)(?<rest>\w*)/g, (...m) => { const { first, rest } = m.at(-1); counts.set(first + rest.length, (counts.get(first + rest.length) || 0) + 1); });
        const rows = [];
        counts.forEach((n, k) => rows.push({ k, n, h: hashOf(k.repeat(40)) }));
        rows.sort((a, b) => a.n - b.n || a.h - b.h);
        return rows.reduce((s, { k, n }) => s + util.format('%s=%d;', k, n), '') + [...text.matchAll(/o(u|w)/g)].length;
    },
    tree: async () => {
        const root = new Node(500);
        for (let i = 0; i < 300; i++)
            root.insert(random(1000));
        const sum = root.fold((a, b) => mix(a, b), 0);
        return [...root.walk()].slice(0, 20).concat(sum).join();
    },
    stream: () => new Promise((resolve, reject) => {
        const parts = [], upper = new Transform({ transform(chunk, _, then) { then(null, String(chunk).toUpperCase()); } });
        upper.on('data', (d) => parts.push(d));
        pipeline(Readable.from(WORDS), upper, (e) => e ? reject(e) : resolve(parts.join('')));
    }),
    missing: () => database.find(1e9),
    hard: (q) => work({ n: 1 + random(3), seed: +q.get('odd') }),
    eval: async () => String(new Function('a', 'return a.map(x => x * 2)\n.reduce((x, y) => x + y, 0)')([1, 2, 3]) + (0, eval)('[3, 1, 2].sort((a, b) => a - b)[0]')),
};

class Server extends EventEmitter {
    constructor() {
        super();
        this.seen = {};
        this.on('request', (name) => { this.seen[name] = (this.seen[name] || 0) + 1; });
        this.http = http.createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, (req, res) => this.answer(req, res).catch((e) => this.fail(res, e)));
    }
    async answer(req, res) {
        const url = new URL(req.url, 'http://localhost'), page = pages[url.pathname.slice(1)];
        this.emit('request', url.pathname);
        const body = await page(url.searchParams);
        res.setHeader('etag', crypto.createHash('sha1').update(body).digest('hex'));
        res.end(body);
    }
    fail(res, e) {
        res.statusCode = e instanceof RangeError ? 404 : 500;
        res.end(e.stack);
    }
}

// --- the work of the other threads ---
class Matrix {
    constructor(n, seed) { this.n = n; this.cells = Float64Array.from({ length: n * n }, (_, i) => (i * seed + 7) % 13); }
    times(other) {
        const out = new Matrix(this.n, 0), { n } = this;
        for (let i = 0; i < n; i++)
            for (let j = 0; j < n; j++) {
                let s = 0;
                for (let k = 0; k < n; k++)
                    s += this.cells[i * n + k] * other.cells[k * n + j];
                out.cells[i * n + j] = s;
            }
        return out;
    }
    get trace() { return this.cells.reduce((s, v, i) => i % (this.n + 1) ? s : s + v, 0); }
}

function *primes(limit) {
    const not = new Uint8Array(limit);
    for (let i = 2; i < limit; i++) {
        if (not[i]) continue;
        yield i;
        for (let j = i * i; j < limit; j += i) not[j] = 1;
    }
}

function hardWork({ n, seed }) {
    const m = new Matrix(24, seed + 3);
    let found = 0;
    for (let i = 0; i < n; i++)
        found += Math.round(m.times(m).trace);
    for (const p of primes(3000))
        found = mix(found, p);
    const shuffled = Array.from({ length: 400 }, () => random(1000)).sort((a, b) => a - b);
    return crypto.createHash('sha256').update(shuffled.join()).update(zlib.deflateSync(JSON.stringify(shuffled))).digest('hex') + found;
}

let nextWork = 0;
const waiting = new Map(), workers = [];
function work(job) {
    const id = nextWork++;
    return new Promise((resolve) => {
        waiting.set(id, resolve);
        workers[id % workers.length].postMessage({ id, job });
    });
}

function client(port, agent, then) {
    const name = Object.keys(pages)[random(Object.keys(pages).length)];
    http.get({ port, agent, path: '/' + name + '?odd=' + random(2) }, (res) => {
        let n = 0;
        res.on('data', (d) => { n += d.length; });
        res.on('end', () => then(n));
    }).on('error', () => then(0));
}

if (isMainThread) {
    const server = new Server(), agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    for (let i = 0; i < 2; i++)
        workers.push(new Worker(__filename).on('message', ({ id, answer }) => { waiting.get(id)(answer); waiting.delete(id); }));
    server.http.listen(0, () => {
        const { port } = server.http.address();
        let answered = 0;
        const again = () => {
            if (++answered === 300)
                console.log('ready');
            client(port, agent, again);
        };
        for (let i = 0; i < 6; i++)
            again();
    });
} else {
    parentPort.on('message', ({ id, job }) => parentPort.postMessage({ id, answer: hardWork(job) }));
}
"""

BUILD = r"""'use strict';
// --expose-internals
process.noDeprecation = true;
require(process.env.TRUTH);
const acorn = require('internal/deps/acorn/acorn/dist/acorn'), walk = require('internal/deps/acorn/acorn-walk/dist/walk');
const vm = require('vm'), zlib = require('zlib'), crypto = require('crypto'), path = require('path');
const sources = Object.entries(process.binding('natives')).filter(([, text]) => typeof text === 'string' && text.length < 40000);

// Prints a tree as JavaScript again, as far as it knows the nodes.
class Printer {
    constructor() { this.depth = 0; this.out = []; }
    print(node) {
        if (!node)
            return '';
        const f = this[node.type];
        return f ? f.call(this, node) : this.other(node);
    }
    list(nodes, between = ', ') { return nodes.map((n) => this.print(n)).join(between); }
    indent(f) {
        this.depth++;
        try {
            return f();
        } finally {
            this.depth--;
        }
    }
    other(node) { return '/* ' + node.type + ' */'; }
    Program(n) { return this.list(n.body, '\n'); }
    BlockStatement(n) { return '{\n' + this.indent(() => n.body.map((s) => ' '.repeat(this.depth * 2) + this.print(s)).join('\n')) + '\n}'; }
    ExpressionStatement(n) { return this.print(n.expression) + ';'; }
    VariableDeclaration(n) { return n.kind + ' ' + this.list(n.declarations) + ';'; }
    VariableDeclarator(n) { return this.print(n.id) + (n.init ? ' = ' + this.print(n.init) : ''); }
    FunctionDeclaration(n) { return `function ${this.print(n.id)}(${this.list(n.params)}) ${this.print(n.body)}`; }
    FunctionExpression(n) { return this.FunctionDeclaration(n); }
    ArrowFunctionExpression(n) { return `(${this.list(n.params)}) => ${this.print(n.body)}`; }
    CallExpression(n) { return `${this.print(n.callee)}(${this.list(n.arguments)})`; }
    MemberExpression(n) { return n.computed ? `${this.print(n.object)}[${this.print(n.property)}]` : `${this.print(n.object)}.${this.print(n.property)}`; }
    AssignmentExpression(n) { return `${this.print(n.left)} ${n.operator} ${this.print(n.right)}`; }
    BinaryExpression(n) { return `(${this.print(n.left)} ${n.operator} ${this.print(n.right)})`; }
    LogicalExpression(n) { return this.BinaryExpression(n); }
    IfStatement(n) { return `if (${this.print(n.test)}) ${this.print(n.consequent)}${n.alternate ? ' else ' + this.print(n.alternate) : ''}`; }
    ReturnStatement(n) { return n.argument ? `return ${this.print(n.argument)};` : 'return;'; }
    ObjectExpression(n) { return `{ ${this.list(n.properties)} }`; }
    Property(n) { return `${this.print(n.key)}: ${this.print(n.value)}`; }
    ArrayExpression(n) { return `[${this.list(n.elements)}]`; }
    Identifier(n) { return n.name; }
    Literal(n) { return n.raw; }
}

class Names {
    #counts = new Map();
    add(name) { this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1); }
    *most(n) {
        const sorted = [...this.#counts].sort(([a, i], [b, j]) => j - i || (a < b ? -1 : 1));
        for (const [name, count] of sorted.slice(0, n))
            yield `${name}:${count}`;
    }
}

function parse(name, text) {
    return acorn.parse(text, { ecmaVersion: 'latest', sourceType: 'script', allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true, locations: true });
}

function countNames(tree) {
    const names = new Names();
    walk.full(tree, (node) => { if (node.type === 'Identifier') names.add(node.name); });
    walk.ancestor(tree, { CallExpression(node, ancestors) { names.add('depth ' + ancestors.length); } });
    return [...names.most(10)];
}

function minify(text) {
    return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').replace(/[ \t]+/g, ' ').split('\n').filter((l) => l.trim()).map((l) => l.trimStart()).join('\n');
}

async function one([name, text], n) {
    let tree;
    try {
        tree = parse(name, text);
        if (n % 7 === 0)
            parse(name, text.slice(0, -20));
    } catch (e) {
        if (!(e instanceof SyntaxError))
            throw e;
        tree ??= parse(name, '');
    }
    await null;
    const printed = new Printer().print(tree), small = minify(text);
    const json = JSON.stringify(tree, (k, v) => k === 'loc' || typeof v === 'bigint' ? undefined : v);
    const packed = zlib.gzipSync(json.slice(0, 100000), { level: 1 });
    const made = new vm.Script(`(function () {\n${small.length % 2 ? '' : '\n'}  return [${small.length}, ${printed.length}]\n    .map((x) => x * 2);\n})()`, { filename: path.join('made', name + '.js') });
    return { name, names: countNames(tree), sizes: made.runInThisContext(), hash: crypto.createHash('sha1').update(packed).digest('base64') };
}

async function main() {
    for (let n = 0;; n++) {
        const batch = Array.from({ length: 4 }, (_, i) => sources[(n * 4 + i) % sources.length]);
        const done = await Promise.all(batch.map(one));
        done.sort((a, b) => a.hash.localeCompare(b.hash));
        if (n === 12)
            console.log('ready');
        await new Promise(setImmediate);
    }
}
main();
"""

# argv: the folder of npm
NPM = r"""'use strict';
require(process.env.TRUTH);
const fs = require('fs'), path = require('path'), { createRequire } = require('module');
const root = process.argv[2], need = createRequire(path.join(root, 'package.json'));
const some = (name) => { try { return need(name); } catch { return null; } };
const semver = some('semver'), match = some('minimatch'), tar = some('tar'), ini = some('ini'), ssri = some('ssri'), diff = some('diff'), spdx = some('spdx-expression-parse');
const files = [];

function list(dir) {
    for (const e of fs.readdirSync(dir, { withFileTypes: true }))
        if (e.isDirectory() && files.length < 400)
            list(path.join(dir, e.name));
        else if (/\.(js|json|md)$/.test(e.name))
            files.push(path.join(dir, e.name));
}

function versions(n) {
    const all = [];
    for (let i = 0; i < 60; i++)
        all.push(`${i * 7 % 5}.${i * n % 11}.${i}${i % 4 ? '' : '-beta.' + i}`);
    semver.sort(all);
    const ranges = ['^1.2.0', '~2.3', '>=1 <4 || 0.x', '1.x - 3.x'];
    return ranges.map((r) => semver.maxSatisfying(all, r)).join() + semver.rcompare(all[0], all[1]);
}

function matches() {
    const f = match.minimatch || match;
    return ['**/*.js', '**/{lib,bin}/**', '!(*.md)', '**/node_modules/*/package.json'].map((p) => files.filter((name) => f(name, p, { dot: true })).length);
}

async function archive(n) {
    const chosen = files.slice(n % 40, n % 40 + 6), parts = [];
    await new Promise((resolve, reject) => tar.create({ gzip: true, cwd: '/', portable: true }, chosen.map((f) => f.slice(1)))
        .on('data', (d) => parts.push(d)).on('end', resolve).on('error', reject));
    let listed = 0;
    const reader = new (tar.Parser || tar.Parse)();
    await new Promise((resolve, reject) => {
        reader.on('entry', (e) => { listed++; e.resume(); }).on('end', resolve).on('error', reject);
        reader.end(Buffer.concat(parts));
    });
    return listed + (ssri ? ssri.fromData(Buffer.concat(parts)).toString() : '');
}

function texts(n) {
    const a = fs.readFileSync(files[n % files.length], 'utf8').slice(0, 3000), b = a.replace(/the|var|const/g, (w) => w.toUpperCase());
    const settings = ini ? ini.parse(ini.stringify({ a: { b: [1, 2, 3], c: a.length }, d: 'x=y' })) : null;
    const licences = spdx ? ['MIT', '(MIT OR Apache-2.0)', '(BSD-2-Clause AND (ISC OR CC0-1.0))'].map(spdx) : [];
    return (diff ? diff.diffWords(a, b).length : 0) + JSON.stringify({ settings, licences }).length;
}

async function main() {
    list(root);
    for (let n = 0;; n++) {
        versions(n);
        if (match) matches();
        if (tar) await archive(n);
        texts(n);
        if (n === 8)
            console.log('ready');
        await null;
    }
}
main();
"""

# Of each: the text, and options of Node.js.
PROGRAMS = {"web": (WEB, []), "build": (BUILD, ["--expose-internals"]), "npm": (NPM, [])}
