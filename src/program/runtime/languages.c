/* Keeps the interpreters of traced processes. */
#include "program/runtime/languages.h"

#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/procdir.h"
#include "program/runtime/patience.h"

struct process {
	struct space *space;
	struct runtime *runtime; /* NULL: none was found */
	uint32_t number;         /* of its address space */
	uint64_t started;        /* procdir_start() */
	size_t took;             /* of languages.budget */
	bool ended;
};

struct code_key {
	uint64_t id;
	uint32_t pid, pad;
};

struct code {
	struct code_key key;
	struct runtime *runtime;
	const void *code;
	uint64_t caller; /* the word whose place the frame has; 0: it has its own */
};

enum {
	BUDGET = 64 << 20,    /* bytes of names and tables of all processes */
	PROCESSES_MAX = 4096, /* whose names are known at a time */
	KNOWN_MAX = 1 << 18,  /* code objects */
	TRIES_MAX = 10,       /* to find an interpreter that has not begun */
	LEARN_READS = 200000, /* of a process, for one of its functions */
	LEARN_MS = 1000,
	AGAIN_MS = 10, /* until the second of them; each time twice as long */
	AGAIN_MAX_MS = 1000,
	TRIED_MAX = 1 << 14, /* processes in languages.tries */
};
#define ASK_AGAIN_NS 2000000ull /* between requests for names that were not read */
#define ASK_AGAIN_MAX_NS 128000000ull
#define TIDY_NS 1000000000ull
#define ASK_CALM_NS 1000000000ull /* without such a request: the waits are short again */

struct languages {
	size_t budget, budget_max;
	uint32_t processes_max;
	struct patience patience;
	uint64_t left_out;         /* interpreters and functions, because of a limit */
	bool unlearned;            /* a name was not read, because its object had moved */
	uint64_t ask_ns, ask_wait; /* when names may be requested again, and the last wait */
	struct hash codes;         /* struct code_key -> index in known */
	VEC(struct code) known;
	struct hash tries;             /* pid -> how often no interpreter was found */
	struct hash pids;              /* pid -> index in processes */
	VEC(struct process) processes; /* those before an execve() stay: frames have their names */
	struct hash forgotten;         /* pids of processes whose names were forgotten */
	uint64_t tidy_ns;              /* when to look for the next ends */
};

struct languages *languages_new(void)
{
	struct languages *l = xcalloc(1, sizeof(*l));

	languages_limit(l, BUDGET, PROCESSES_MAX);
	l->patience.begun = now_ns();
	return l;
}

void languages_limit(struct languages *l, size_t bytes, uint32_t processes)
{
	l->budget = l->budget_max = bytes;
	l->processes_max = processes;
}

static void process_fini(struct process *p)
{
	runtime_free(p->runtime);
	space_free(p->space);
}

void languages_free(struct languages *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->processes.n; i++)
		process_fini(&l->processes.v[i]);
	vec_fini(&l->processes);
	vec_fini(&l->known);
	hash_fini(&l->codes);
	hash_fini(&l->pids);
	hash_fini(&l->tries);
	hash_fini(&l->forgotten);
	free(l);
}

static struct process *find(const struct languages *l, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *i = hash_get(&l->pids, &key, sizeof(key));

	return i ? &l->processes.v[*i] : NULL;
}

/* Returns the number of milliseconds after which to look again for an interpreter with invalid
 * structures, because it may just begin. 0: never. */
static uint32_t again(struct languages *l, pid_t pid)
{
	uint32_t key = (uint32_t)pid, ms;
	uint64_t *n = hash_put(&l->tries, &key, sizeof(key), NULL);

	if (*n >= TRIES_MAX)
		return 0;
	ms = AGAIN_MS << (*n)++;
	return ms < AGAIN_MAX_MS ? ms : AGAIN_MAX_MS;
}

/* Begins to read a process for as long as the run may wait for its memory. */
static void reading_begin(struct languages *l, struct space *s, uint64_t reads, uint32_t ms)
{
	const uint64_t left = patience_left(&l->patience, now_ns()) / 1000000;

	space_limit(s, UINT64_MAX, UINT64_MAX);
	(void)space_limit_within(s, reads, left < ms ? (uint32_t)left : ms);
	l->patience.used -= space_waited(s);
}

/* Returns true when a read has failed because of a limit. */
static bool reading_end(struct languages *l, struct space *s)
{
	const bool spent = space_is_spent(s);

	l->patience.used += space_waited(s);
	space_limit(s, UINT64_MAX, UINT64_MAX);
	return spent;
}

static struct process *languages_look(struct languages *l, pid_t pid, uint32_t number,
				      uint32_t *ret_ms)
{
	struct process p = { .number = number, .started = procdir_start(pid) };
	const size_t budget = l->budget;
	uint32_t key = (uint32_t)pid;
	struct err *e = NULL;

	if (l->processes.n >= l->processes_max || !patience_left(&l->patience, now_ns())) {
		l->left_out++;
		return NULL;
	}
	err_free(space_live(pid, &p.space));
	if (p.space) {
		reading_begin(l, p.space, UINT64_MAX, UINT32_MAX);
		e = runtime_find_met(p.space, &l->budget, &p.runtime);
		(void)reading_end(l, p.space);
	}
	if (e && e->code == E2BIG)
		l->left_out++;
	else if (e)
		*ret_ms = again(l, pid);
	err_free(e);
	if (!p.runtime) {
		process_fini(&p);
		return NULL;
	}
	p.took = budget - l->budget;
	*hash_put(&l->pids, &key, sizeof(key), NULL) = l->processes.n;
	vec_push(&l->processes, p);
	return vec_last(&l->processes);
}

bool languages_find(struct languages *l, pid_t pid, uint32_t space, struct wire_language *ret,
		    uint32_t *ret_ms)
{
	struct process *p = find(l, pid);

	*ret_ms = 0;
	if (!p || p->ended || (space && p->number && p->number != space))
		p = languages_look(l, pid, space, ret_ms);
	if (!p || !p->runtime->type->wire)
		return false;
	if (p->runtime->type->wire(p->runtime, ret))
		return true;
	*ret_ms = again(l, pid);
	return false;
}

/* --- processes that have ended --- */

/* Returns true when the process has ended, or runs another program. */
static bool is_over(const struct languages *l, uint32_t i)
{
	const struct process *p = &l->processes.v[i];
	const uint64_t started = procdir_start(p->space->pid);

	return find(l, p->space->pid) != p || !started || started != p->started;
}

static void close_ended(struct languages *l)
{
	for (uint32_t i = 0; i < l->processes.n; i++) {
		struct process *p = &l->processes.v[i];

		if (p->ended || !is_over(l, i))
			continue;
		p->ended = true;
		if (p->runtime->type->ended)
			p->runtime->type->ended(p->runtime);
	}
}

/* Removes the functions of runtimes that are going to be freed. */
static void forget_codes(struct languages *l, const struct hash *going)
{
	uint32_t kept = 0;

	hash_fini(&l->codes);
	for (uint32_t i = 0; i < l->known.n; i++) {
		const struct code c = l->known.v[i];

		if (hash_get(going, &c.runtime, sizeof(c.runtime)))
			continue;
		*hash_put(&l->codes, &c.key, sizeof(c.key), NULL) = kept;
		l->known.v[kept++] = c;
	}
	l->known.n = kept;
}

/* Forgets the first half of the processes that have ended. */
static void forget_first(struct languages *l)
{
	struct hash going = { 0 };
	uint32_t ended = 0, kept = 0;

	for (uint32_t i = 0; i < l->processes.n; i++)
		ended += l->processes.v[i].ended;
	ended = (ended + 1) / 2;
	hash_fini(&l->pids);
	for (uint32_t i = 0; i < l->processes.n; i++) {
		struct process p = l->processes.v[i];
		const uint32_t pid = (uint32_t)p.space->pid;

		if (p.ended && ended) {
			ended--;
			hash_put(&going, &p.runtime, sizeof(p.runtime), NULL);
			hash_put(&l->forgotten, &pid, sizeof(pid), NULL);
			l->budget += p.took;
			process_fini(&p);
			continue;
		}
		*hash_put(&l->pids, &pid, sizeof(pid), NULL) = kept;
		l->processes.v[kept++] = p;
	}
	l->processes.n = kept;
	forget_codes(l, &going);
	hash_fini(&going);
}

void languages_tidy(struct languages *l, uint64_t now_ns)
{
	if (now_ns < l->tidy_ns)
		return;
	l->tidy_ns = now_ns + TIDY_NS;
	close_ended(l);
	if (l->budget < l->budget_max / 4 || l->processes.n > l->processes_max / 4 * 3 ||
	    l->known.n > KNOWN_MAX / 4 * 3)
		forget_first(l);
	if (l->tries.n > TRIED_MAX)
		hash_fini(&l->tries);
}

/* --- names --- */

static struct code *known(const struct languages *l, const struct code_key *key)
{
	const uint64_t *i = hash_get(&l->codes, key, sizeof(*key));

	return i ? &l->known.v[*i] : NULL;
}

static void keep(struct languages *l, const struct code_key *key, struct code code)
{
	code.key = *key;
	*hash_put(&l->codes, key, sizeof(*key), NULL) = l->known.n;
	vec_push(&l->known, code);
}

void languages_learn(struct languages *l, pid_t pid, const struct wire_unwind_ask *ask)
{
	const struct code_key key = { ask->id, (uint32_t)pid, 0 };
	struct process *p = find(l, pid);
	const size_t budget = l->budget;
	const void *code;

	if (!p || p->ended || !p->runtime->type->learn || known(l, &key))
		return;
	if (l->known.n == KNOWN_MAX || !patience_left(&l->patience, now_ns())) {
		l->left_out++;
		return;
	}
	reading_begin(l, p->space, LEARN_READS, LEARN_MS);
	p->runtime->spent = false;
	code = p->runtime->type->learn(p->runtime, ask->code, ask->entry, ask->id);
	if ((reading_end(l, p->space) && !code) || p->runtime->spent)
		l->left_out++;
	p->took += budget - l->budget;
	if (code)
		keep(l, &key, (struct code){ .runtime = p->runtime, .code = code });
	else if (p->runtime->type->moves)
		l->unlearned = true;
}

bool languages_ask_again(struct languages *l, uint64_t now_ns)
{
	if (!l->unlearned || now_ns < l->ask_ns)
		return false;
	l->unlearned = false;
	if (now_ns - l->ask_ns > ASK_CALM_NS)
		l->ask_wait = ASK_AGAIN_NS;
	else if (l->ask_wait < ASK_AGAIN_MAX_NS)
		l->ask_wait *= 2;
	l->ask_ns = now_ns + l->ask_wait;
	return true;
}

uint64_t languages_left_out(const struct languages *l)
{
	return l->left_out;
}

uint64_t languages_called(struct languages *l, pid_t pid, uint64_t word, uint64_t caller)
{
	struct code_key key = { WIRE_LANGUAGE_ID(word), (uint32_t)pid, 0 };
	struct code_key caller_key = { WIRE_LANGUAGE_ID(caller), (uint32_t)pid, 0 };
	const struct code *c = known(l, &key), *by = known(l, &caller_key);
	struct runtime_frame f;

	if (by && by->caller)
		caller = by->caller;
	if (!c || c->caller || WIRE_LANGUAGE_AT(word) != WIRE_LANGUAGE_BEFORE)
		return word;
	(void)c->runtime->type->describe(c->runtime, c->code, WIRE_LANGUAGE_BEFORE, 0, &f);
	if (f.file)
		return word;
	key.id = (wire_unwind_mix(word) ^ wire_unwind_mix(caller)) & WIRE_LANGUAGE_IDS;
	if (!known(l, &key)) {
		if (l->known.n == KNOWN_MAX)
			return word;
		keep(l, &key,
		     (struct code){ .runtime = c->runtime, .code = c->code, .caller = caller });
	}
	return (word & ~WIRE_LANGUAGE_IDS) | key.id;
}

const struct runtime *languages_runtime(const struct languages *l, pid_t pid)
{
	const struct process *p = find(l, pid);

	return p ? p->runtime : NULL;
}

bool languages_is_loop(const struct languages *l, pid_t pid, uint64_t addr)
{
	const struct process *p = find(l, pid);

	return p && p->runtime->type->is_loop(p->runtime, addr);
}

bool languages_loop(const struct languages *l, pid_t pid, uint64_t *ret_start, uint64_t *ret_size)
{
	const struct process *p = find(l, pid);

	if (!p || !p->runtime->type->loop)
		return false;
	p->runtime->type->loop(p->runtime, ret_start, ret_size);
	return *ret_size != 0;
}

bool languages_known(const struct languages *l, pid_t pid, uint64_t id)
{
	const struct code_key key = { id, (uint32_t)pid, 0 };

	return known(l, &key) != NULL;
}

bool languages_is_part(const struct languages *l, pid_t pid, uint64_t addr)
{
	const struct process *p = find(l, pid);

	return p && runtime_is_part(p->runtime, addr);
}

bool languages_in_place(const struct languages *l, pid_t pid, uint64_t word)
{
	const struct code_key key = { WIRE_LANGUAGE_ID(word), (uint32_t)pid, 0 };
	const struct code *c = known(l, &key);
	const struct process *p = find(l, pid);
	const struct runtime *r = c ? c->runtime : p ? p->runtime : NULL;

	return r && r->type->step;
}

static const struct code *frame(const struct languages *l, pid_t pid, uint64_t word, uint32_t i,
				uint32_t *ret_n, struct runtime_frame *ret)
{
	const struct code_key key = { WIRE_LANGUAGE_ID(word), (uint32_t)pid, 0 };
	const struct code *c = known(l, &key);

	*ret = (struct runtime_frame){ 0 };
	*ret_n = 1;
	if (c)
		*ret_n = c->runtime->type->describe(c->runtime, c->code, WIRE_LANGUAGE_AT(word), i,
						    ret);
	return c;
}

const char *languages_frame(struct languages *l, pid_t pid, uint64_t word, uint32_t i,
			    uint32_t *ret_n, struct runtime_frame *ret)
{
	const struct code *c = frame(l, pid, word, i, ret_n, ret);
	const struct process *p = find(l, pid);
	struct runtime_frame caller;
	const uint32_t key = (uint32_t)pid;
	uint32_t n;

	if (!c && hash_get(&l->forgotten, &key, sizeof(key)))
		l->left_out++;
	if (c && c->caller) {
		(void)frame(l, pid, c->caller, 0, &n, &caller);
		ret->file = caller.file;
		ret->line = caller.line;
	}
	return c ? c->runtime->type->name : p ? p->runtime->type->name : "python";
}
