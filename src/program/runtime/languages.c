/* Keeps the interpreters of traced processes. */
#include "program/runtime/languages.h"

#include "base/hash.h"

struct process {
	struct space *space;
	struct runtime *runtime; /* NULL: none was found */
	uint32_t number;         /* of its address space */
};

struct code_key {
	uint64_t id;
	uint32_t pid, pad;
};

struct code {
	struct runtime *runtime;
	const void *code;
};

enum {
	BUDGET = 64 << 20,    /* bytes of names and tables of all processes */
	PROCESSES_MAX = 4096, /* limit of processes that are examined in a run */
	KNOWN_MAX = 1 << 18,  /* code objects */
};

struct languages {
	size_t budget;
	struct hash codes; /* struct code_key -> index in known */
	VEC(struct code) known;
	struct hash pids; /* pid -> index in processes */
	/* processes before an execve() stay, because frames have their names */
	VEC(struct process) processes;
};

struct languages *languages_new(void)
{
	struct languages *l = xcalloc(1, sizeof(*l));

	l->budget = BUDGET;
	return l;
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
	free(l);
}

static struct process *find(const struct languages *l, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *i = hash_get(&l->pids, &key, sizeof(key));

	return i ? &l->processes.v[*i] : NULL;
}

static struct process *look(struct languages *l, pid_t pid, uint32_t number)
{
	struct process p = { .number = number };
	uint32_t key = (uint32_t)pid;

	if (l->processes.n == PROCESSES_MAX)
		return NULL;
	err_free(space_live(pid, &p.space));
	if (p.space)
		err_free(runtime_find_met(p.space, &l->budget, &p.runtime));
	if (!p.runtime) {
		process_fini(&p);
		return NULL;
	}
	*hash_put(&l->pids, &key, sizeof(key), NULL) = l->processes.n;
	vec_push(&l->processes, p);
	return vec_last(&l->processes);
}

bool languages_find(struct languages *l, pid_t pid, uint32_t space, struct wire_language *ret)
{
	struct process *p = find(l, pid);

	if (!p || (space && p->number && p->number != space))
		p = look(l, pid, space);
	if (!p || !p->runtime->type->wire)
		return false;
	p->runtime->type->wire(p->runtime, ret);
	return true;
}

void languages_learn(struct languages *l, pid_t pid, uint64_t code, uint64_t id)
{
	const struct code_key key = { id, (uint32_t)pid, 0 };
	struct process *p = find(l, pid);
	const void *known;

	if (!p || !p->runtime->type->learn || l->known.n == KNOWN_MAX ||
	    hash_get(&l->codes, &key, sizeof(key)))
		return;
	known = p->runtime->type->learn(p->runtime, code, id);
	if (!known)
		return;
	*hash_put(&l->codes, &key, sizeof(key), NULL) = l->known.n;
	vec_push(&l->known, (struct code){ p->runtime, known });
}

bool languages_is_loop(const struct languages *l, pid_t pid, uint64_t addr)
{
	const struct process *p = find(l, pid);

	return p && p->runtime->type->is_loop(p->runtime, addr);
}

bool languages_frame(struct languages *l, pid_t pid, uint64_t word, struct runtime_frame *ret)
{
	const struct code_key key = { WIRE_LANGUAGE_ID(word), (uint32_t)pid, 0 };
	const uint64_t *i = hash_get(&l->codes, &key, sizeof(key));
	const struct code *c = i ? &l->known.v[*i] : NULL;

	if (!c)
		return false;
	c->runtime->type->describe(c->runtime, c->code, WIRE_LANGUAGE_AT(word), ret);
	return true;
}
