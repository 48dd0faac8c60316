/* Makes the tables by which a recorded command walks its stacks, and names the frames. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/procdir.h"
#include "memory/alloc/shim_language.h"
#include "memory/alloc/shim_stacks.h"
#include "program/symbol/symbol.h"
#include "program/unwind/unwind.h"
#include "render/render.h"

enum {
	EPOCHS_MAX = 65535,    /* after so many objects were unloaded, there are no tables */
	SERVED_FREE = 16,      /* answers to a process that no other waits for */
	NODE_DEFINED = 128,    /* what this process and a reader need for a node */
	NAMES_MAX = 256 << 10, /* addresses; the names of more are not looked up */
	GIVEN_UP = 32 << 10,   /* nodes behind one that is not filled, until it is given up */
	NODES_FIRST = 2 << 10, /* nodes that pages are made for */
	NODES_AHEAD = 64 << 10,
	NODES_SOME =
		512 << 10,   /* bytes of nodes, from which on a process has the table of others */
	PREPARED_LEAST = 16, /* pages that are made at once */
	WRITE_NS = 10000000, /* nodes are written for so long, until other work has its turn */
	WRITTEN_AT_ONCE = 64,
	MADV_POPULATE_WRITE_ = 23,
	TABLES_LEAST = 4 << 20, /* bytes of the budget, for the tables of a process */
};

/* What was written of a node. */
struct node_info {
	uint32_t stack; /* number of the node that has the same frames; 0: none */
	uint32_t frame; /* its own frame's number; 0: not known yet */
	uint16_t epoch, depth;
	bool done;
	bool language; /* a frame of an interpreted language: is in no file, only in pairs */
};
/* The outermost first: a frame, and the stack up to it. */
struct pair_frame {
	uint32_t frame, stack;
};
enum { NODE_BYTES = 2 * sizeof(struct node_info) };

struct shim_stacks {
	struct wire_alloc *m;
	uint8_t *more; /* the memory behind the rings */
	pid_t pid;
	bool known;          /* program is that of the process */
	uint64_t program[2]; /* procdir_program() */
	struct shim_language language;
	struct unwind_store *store; /* NULL: no tables yet, or none any more */
	struct symbols *symbols;
	struct sink sink; /* names frames */
	/* Of the tables. The store's own words, because the command may change its copy. */
	const uint32_t *chunks[WIRE_ALLOC_CHUNKS];
	uint32_t version, served, mappings, nmappings;
	VEC(uint64_t) epochs; /* the time of the first list of each */
	/* Of the nodes. */
	VEC(struct node_info) nodes;
	uint32_t done;      /* all before are written or given up */
	uint32_t last;      /* the last that was written */
	uint32_t prepared;  /* pages of the process's nodes that were made */
	struct hash pcs;    /* epoch, address -> number of a frame */
	struct hash names;  /* text -> number of a frame */
	struct hash stacks; /* parent, frame -> number of the stack's first node */
	/* The frames of the last pair. The next pair begins with most of them. */
	VEC(struct pair_frame) pair;
	uint32_t pair_root; /* the stack that they stand on */
	struct shim_budget *budget;
	uint64_t used;     /* bytes of its room */
	uint64_t tables;   /* bytes of the budget's tables */
	uint64_t shared;   /* those in the process's memory */
	bool full;         /* no room for its tables: it has none any more */
	uint32_t nserved;  /* answers to requests for tables */
	uint64_t asked_ns; /* of the request at hand; 0: none */
};

/* Counts memory of the process that descry makes, and as much of its own that goes with it. The
 * kernel counts both as descry's, but the limit of memory (base/limits.h) has only the second.
 * Returns false when there is no room. */
static bool may_share(struct shim_stacks *s, uint64_t bytes, uint64_t own)
{
	if (s->budget->tables < bytes + own)
		return false;
	s->budget->tables -= bytes + own;
	s->tables += bytes + own;
	s->shared += bytes;
	limits_reserve(-(int64_t)bytes);
	return true;
}

/* --- tables --- */

static struct wire_unwind_mapping list_mapping(const struct shim_stacks *s, uint32_t list,
					       uint32_t i)
{
	struct wire_unwind_mapping m;

	memcpy(&m, s->chunks[list >> 16] + (list & 0xffff) + i * (sizeof(m) / 4), sizeof(m));
	return m;
}

/* Returns true when text of the old list is not in the new one. Other text may come to its
 * place. */
static bool shim_stacks_unloaded(const struct shim_stacks *s, const struct wire_unwind_process *p)
{
	for (uint32_t i = 0, k = 0; i < s->nmappings; i++) {
		struct wire_unwind_mapping a = list_mapping(s, s->mappings, i), b = { 0 };

		while (k < p->n && (b = list_mapping(s, p->mappings, k)).start < a.start)
			k++;
		if (a.pages &&
		    (k == p->n || b.start != a.start || b.bias != a.bias || b.pages != a.pages))
			return true;
	}
	return false;
}

/* An odd version tells walks that the tables change. */
static void begin_change(struct shim_stacks *s)
{
	if (s->version & 1)
		return;
	__atomic_store_n(&s->m->tables, ++s->version, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(struct shim_stacks *s)
{
	if (s->version & 1)
		__atomic_store_n(&s->m->tables, ++s->version, __ATOMIC_SEQ_CST);
}

/* A process may execute a set-user-ID program while others still have its memory. Called when the
 * process's mappings have been read, before they are written. */
static bool is_same_program(const struct shim_stacks *s)
{
	uint64_t now[2];

	return s->known && procdir_program(s->pid, now) && now[0] == s->program[0] &&
	       now[1] == s->program[1];
}

static struct err *put_chunk(void *arg, uint32_t chunk, const uint32_t *words)
{
	struct shim_stacks *s = arg;

	if (chunk >= WIRE_ALLOC_CHUNKS)
		return err_new(ENOSPC, "the unwind tables do not fit into shared memory");
	if (!is_same_program(s)) /* lists of mappings are in chunks */
		return err_new(EPERM, "the process executes another program");
	s->full |= !s->chunks[chunk] &&
		   !may_share(s, WIRE_ALLOC_CHUNK_BYTES, WIRE_ALLOC_CHUNK_BYTES);
	if (s->full)
		return err_new(ENOSPC, "the unwind tables of all processes take too much memory");
	s->chunks[chunk] = words;
	begin_change(s);
	memcpy(s->more + (size_t)chunk * WIRE_ALLOC_CHUNK_BYTES, words, WIRE_ALLOC_CHUNK_BYTES);
	return NULL;
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	struct shim_stacks *s = arg;

	if (!is_same_program(s))
		return err_new(EPERM, "the process executes another program");
	if (!s->epochs.n || shim_stacks_unloaded(s, p)) {
		if (s->epochs.n == EPOCHS_MAX)
			return err_new(ENOSPC, "too many objects were loaded and unloaded");
		vec_push(&s->epochs, now_ns());
	}
	begin_change(s);
	s->mappings = p->mappings;
	s->nmappings = p->n;
	shim_language_publish(&s->language);
	s->m->mappings = p->mappings;
	s->m->nmappings = p->n;
	s->m->epoch = s->epochs.n - 1;
	return NULL;
}

static void del_process(void *arg, uint32_t pid)
{
}

static const struct unwind_store_ops store_ops = { put_chunk, put_process, del_process };

/* --- nodes --- */

/* A command can make any number of names, and of processes. Returns false when there is no room for
 * one more. */
static bool shim_stacks_room(struct shim_stacks *s, uint64_t bytes)
{
	if (s->budget->room < bytes)
		return false;
	s->budget->room -= bytes;
	s->used += bytes;
	return true;
}

static uint32_t number_text(struct shim_stacks *s, struct alloc_writer *w, const char *text)
{
	size_t n = strlen(text);
	bool is_new;
	uint64_t *at;

	if (!hash_get(&s->names, text, n) && !shim_stacks_room(s, ALLOC_DEFINED + n)) {
		text = "?";
		n = 1;
	}
	at = hash_put(&s->names, text, n, &is_new);
	if (is_new)
		*at = alloc_writer_frame(w, text, n);
	return (uint32_t)*at;
}

static void keep_text(void *arg, const struct frame *f)
{
	struct shim_stacks *s = ((void **)arg)[0];
	char *text = ((void **)arg)[1];

	if (f->kind != FRAME_END)
		frame_text_line(&s->sink, f, text, ALLOC_TEXT_MAX);
}

/* pc: also a word of wire/language.h. */
static uint32_t number_frame(struct shim_stacks *s, struct alloc_writer *w, uint16_t epoch,
			     uint64_t pc)
{
	const uint64_t key[] = { pc & WIRE_LANGUAGE_FRAME ? 0 : epoch, pc };
	char text[ALLOC_TEXT_MAX] = "?";
	void *arg[] = { s, text };
	uint64_t *at = hash_get(&s->pcs, key, sizeof(key));

	if (at)
		return (uint32_t)*at;
	if (s->pcs.n >= NAMES_MAX) /* a command that forges nodes */
		return number_text(s, w, text);
	at = hash_put(&s->pcs, key, sizeof(key), NULL);
	/* 0: by the mappings of now */
	s->sink.time = epoch + 1u < s->epochs.n ? s->epochs.v[epoch] : 0;
	stack_frame(&s->sink, true, (uint32_t)s->pid, pc, true, keep_text, arg);
	*at = number_text(s, w, text);
	return (uint32_t)*at;
}

/* Puts a frame on a stack; gives the new stack this number if no other has the same frames. Returns
 * its number. */
static uint32_t push_frame(struct shim_stacks *s, struct alloc_writer *w, uint32_t stack,
			   uint32_t frame, uint32_t id)
{
	const uint32_t key[] = { stack, frame };
	bool is_new;
	uint64_t *at = hash_put(&s->stacks, key, sizeof(key), &is_new);

	if (is_new) {
		*at = id;
		/* Threads fill their nodes in any order: a lower number may come behind a higher
		 * one. */
		s->last = id > s->last ? id : s->last;
		alloc_writer_node(w, id, stack, frame);
	}
	return (uint32_t)*at;
}

/* Returns false when the file may not have this number, or there is no room. */
static bool may_write(struct shim_stacks *s, uint32_t id)
{
	return !(id > s->last && id - s->last > ALLOC_NODES_GAP) &&
	       shim_stacks_room(s, NODE_DEFINED);
}

/* Gives the node the number of its stack. */
static void end_node(struct shim_stacks *s, struct alloc_writer *w, uint32_t id, uint32_t stack)
{
	s->nodes.v[id].stack = stack;
	if (stack == id)
		return;
	s->last = id > s->last ? id : s->last;
	alloc_writer_node(w, id, stack, 0);
}

/* Takes a number for a stack that no thread has numbered. Returns 0 when there is none. */
static uint32_t take_number(struct shim_stacks *s)
{
	uint32_t id = __atomic_add_fetch(&s->m->nnodes, 1, __ATOMIC_SEQ_CST);

	if (!id || id >= WIRE_ALLOC_NODES)
		return 0;
	while (s->nodes.n <= id && shim_stacks_room(s, NODE_BYTES))
		vec_add(&s->nodes);
	if (id >= s->nodes.n || s->nodes.v[id].done || !may_write(s, id))
		return 0;
	s->nodes.v[id].done = true;
	return id;
}

/* Reads the pcs of a node and of those around it. Returns the root, 0: they make no sense. */
static uint32_t chain_of(const struct shim_stacks *s, uint32_t id, bool language, shim_pcs_vec *ret)
{
	const struct wire_alloc_node *nodes = (const void *)(s->more + WIRE_ALLOC_NODES_AT);

	while (id && id < s->nodes.n && s->nodes.v[id].done &&
	       s->nodes.v[id].language == language && ret->n < ALLOC_FRAMES_MAX) {
		uint32_t parent = __atomic_load_n(&nodes[id].parent, __ATOMIC_RELAXED);

		if (!parent)
			return id;
		if (parent >= id)
			break;
		vec_push(ret,
			 (struct shim_pc){ __atomic_load_n(&nodes[id].pc, __ATOMIC_RELAXED), id });
		id = parent;
	}
	return 0;
}

/* Returns the number of the frame. */
static uint32_t frame_of(struct shim_stacks *s, struct alloc_writer *w, uint16_t epoch,
			 const struct shim_pc *at)
{
	struct node_info *node = &s->nodes.v[at->node];

	if (!at->node)
		return number_frame(s, w, epoch, at->pc);
	node->frame = node->frame ?: number_frame(s, w, epoch, at->pc);
	return node->frame;
}

/* Writes the stack that has these frames, the innermost first, on the stack `root`. id: the number
 * that it gets when no stack has these frames yet. Returns its number, or 0 when all numbers are
 * taken. */
static uint32_t push_frames(struct shim_stacks *s, struct alloc_writer *w, uint32_t root,
			    uint16_t epoch, const struct shim_pc *frames, uint32_t n, uint32_t id)
{
	uint32_t stack = root, known = 0;

	if (s->pair_root != root)
		s->pair.n = 0;
	s->pair_root = root;
	for (uint32_t i = n; i-- > 0;) {
		const uint32_t frame = frame_of(s, w, epoch, &frames[i]), key[] = { stack, frame };
		const uint64_t *at;
		uint32_t number;

		if (known < s->pair.n && s->pair.v[known].frame == frame) {
			stack = s->pair.v[known++].stack;
			continue;
		}
		s->pair.n = known;
		at = hash_get(&s->stacks, key, sizeof(key));
		number = at ? 0 : i ? take_number(s) : id;
		if (!at && !number)
			break;
		stack = at ? (uint32_t)*at : push_frame(s, w, stack, frame, number);
		vec_push(&s->pair, (struct pair_frame){ frame, stack });
		known++;
	}
	return stack;
}

/* Writes the stack of a native one and of frames of an interpreted language. */
static void write_pair(struct shim_stacks *s, struct alloc_writer *w, uint32_t id, uint32_t parent,
		       uint32_t language)
{
	const struct wire_alloc_node *nodes = (const void *)(s->more + WIRE_ALLOC_NODES_AT);
	shim_pcs_vec native = { 0 }, words = { 0 }, all = { 0 };
	uint32_t root = chain_of(s, parent, false, &native), stack, n;
	bool whole = root && (__atomic_load_n(&nodes[root].pc, __ATOMIC_RELAXED) & 0xff) ==
				     WIRE_UNWIND_END_ROOT;

	if (root && may_write(s, id)) {
		if (chain_of(s, language, true, &words))
			shim_language_merge(&s->language, &native, whole, &words, &all);
		n = all.n < ALLOC_FRAMES_MAX ? all.n : ALLOC_FRAMES_MAX - 1;
		stack = push_frames(s, w, s->nodes.v[root].stack, s->nodes.v[parent].epoch, all.v,
				    n, id);
		if (stack)
			end_node(s, w, id, stack);
	}
	vec_fini(&native);
	vec_fini(&words);
	vec_fini(&all);
}

/* Writes a node that is filled. The command may have written any numbers there. */
static void write_node(struct shim_stacks *s, struct alloc_writer *w, uint32_t id, uint64_t pc,
		       uint32_t parent)
{
	struct node_info *own = &s->nodes.v[id], *up = parent < id ? &s->nodes.v[parent] : NULL;
	uint32_t frame;

	own->done = true;
	if (!parent) {
		uint64_t end = pc & 0xff;
		char text[ALLOC_TEXT_MAX];

		own->language = WIRE_ALLOC_IS_PAIR(pc);
		own->epoch = (uint16_t)(pc >> 8);
		if (own->language || end <= WIRE_UNWIND_END_DEEP)
			return;
		snprintf(text, sizeof(text), "[stack ends: %s]",
			 unwind_end_text((enum wire_unwind_end)end));
		frame = number_text(s, w, text);
	} else {
		if (!up || !up->done || up->depth >= ALLOC_FRAMES_MAX)
			return;
		own->language = up->language;
		own->epoch = up->epoch;
		own->depth = up->depth + up->language;
		if (own->language)
			return;
		if (WIRE_ALLOC_IS_PAIR(pc)) {
			write_pair(s, w, id, parent, WIRE_ALLOC_PAIRED(pc));
			return;
		}
		frame = own->frame = number_frame(s, w, own->epoch, pc);
	}
	if (!may_write(s, id))
		return;
	own->depth++;
	end_node(s, w, id, push_frame(s, w, parent ? up->stack : 0, frame, id));
}

/* Makes pages for the nodes that come next. The process would clear each of them in a page fault of
 * its own. As many as it has made before, so that one which makes few gets few. */
static void shim_stacks_prepare(struct shim_stacks *s, uint32_t n)
{
	uint64_t to = (uint64_t)n +
		      (n < NODES_AHEAD ? n < NODES_FIRST ? NODES_FIRST : n : NODES_AHEAD),
		 from = s->prepared, page = 4096, far;
	uint8_t *nodes = s->more + WIRE_ALLOC_NODES_AT;

	to = (to < WIRE_ALLOC_NODES ? to : WIRE_ALLOC_NODES) * sizeof(struct wire_alloc_node) /
	     page;
	if (n <= 1 || (from && to < from + PREPARED_LEAST))
		return;
	far = to * page >= NODES_SOME && from * page < NODES_SOME ? WIRE_ALLOC_FAR * 4 : 0;
	if (!may_share(s, (to - from) * page + far, 0))
		return;
	/* Linux 5.14 */
	madvise(nodes + from * page, (to - from) * page, MADV_POPULATE_WRITE_);
	if (far)
		madvise(s->more + WIRE_ALLOC_FAR_AT, far, MADV_POPULATE_WRITE_);
	s->prepared = (uint32_t)to;
}

bool shim_stacks_write(struct shim_stacks *s, struct alloc_writer *w)
{
	const struct wire_alloc_node *nodes = (const void *)(s->more + WIRE_ALLOC_NODES_AT);
	const uint64_t began = now_ns();
	bool all = true;
	uint32_t n = __atomic_load_n(&s->m->nnodes, __ATOMIC_ACQUIRE), written = 0;

	n = n < WIRE_ALLOC_NODES ? n + 1 : WIRE_ALLOC_NODES;
	while (s->nodes.n < n && shim_stacks_room(s, NODE_BYTES))
		vec_add(&s->nodes);
	n = n < s->nodes.n ? n : s->nodes.n;
	shim_stacks_prepare(s, n);
	for (uint32_t i = s->done; i < n; i++) {
		if (s->nodes.v[i].done || !__atomic_load_n(&nodes[i].filled, __ATOMIC_ACQUIRE))
			continue;
		write_node(s, w, i, __atomic_load_n(&nodes[i].pc, __ATOMIC_RELAXED),
			   __atomic_load_n(&nodes[i].parent, __ATOMIC_RELAXED));
		if (++written % WRITTEN_AT_ONCE == 0 && now_ns() - began > WRITE_NS) {
			n = i + 1;
			all = false;
		}
	}
	/* A thread that was killed leaves a node that is never filled. */
	while (s->done < n && (s->nodes.v[s->done].done || n - s->done > GIVEN_UP))
		s->done++;
	return all;
}

void shim_stacks_of(struct shim_stacks *s, pid_t pid, uid_t uid)
{
	char path[32];
	struct stat st;

	/* In this order: a program that is executed now makes one of both fail. */
	s->known = procdir_program(pid, s->program);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	s->known &= !stat(path, &st) && st.st_uid == uid;
}

uint64_t shim_stacks_asked(struct shim_stacks *s, uint64_t now)
{
	if (__atomic_load_n(&s->m->asked, __ATOMIC_SEQ_CST) == s->served &&
	    !(s->language.again_ns && now >= s->language.again_ns))
		return 0;
	s->asked_ns = s->asked_ns ?: now;
	return s->nserved >= SERVED_FREE && now < s->budget->next_ns ? 0 : s->asked_ns;
}

void shim_stacks_serve(struct shim_stacks *s, pid_t pid, struct alloc_writer *w)
{
	uint32_t asked = __atomic_load_n(&s->m->asked, __ATOMIC_SEQ_CST);
	const uint64_t began = now_ns();
	struct err *e;

	s->pid = pid;
	if (!shim_stacks_write(s, w)) /* by the names of now */
		return;
	s->asked_ns = 0;
	s->full |= !s->nserved && s->budget->tables < TABLES_LEAST;
	if (!s->store && !s->full)
		s->store = unwind_store_new(&store_ops, s);
	symbols_look(s->symbols, pid); /* before the time of a new epoch */
	s->language.pid = pid;
	if (is_same_program(s) && !s->full) /* put_process() looks again, before walks are told */
		shim_language_find(&s->language, s->store);
	e = s->full ? NULL : unwind_store_add(s->store, pid);
	if (e && (s->version & 1 || s->nmappings)) {
		/* Walks by the old list could go wrong. */
		begin_change(s);
		s->m->nmappings = s->nmappings = 0;
	}
	if (e && s->full) {
		unwind_store_free(s->store);
		s->store = NULL;
	}
	err_free(e);
	end_change(s);
	s->served = asked;
	__atomic_store_n(&s->m->served, asked, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->m->served, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	/* Those who ask often have a fifth of the time together. */
	if (s->nserved++ >= SERVED_FREE)
		s->budget->next_ns = now_ns() + (now_ns() - began) * 4;
}

static bool runs_same(const void *arg)
{
	return is_same_program(arg);
}

bool shim_stacks_names(struct shim_stacks *s)
{
	return !shim_language_asked(&s->language) ||
	       shim_language_names(&s->language, runs_same, s);
}

/* --- life --- */

struct shim_stacks *shim_stacks_new(struct wire_alloc *m, struct symbols *symbols,
				    struct languages *languages, struct shim_budget *budget)
{
	struct shim_stacks *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->more = (uint8_t *)m + WIRE_ALLOC_BYTES;
	s->symbols = symbols;
	s->sink.symbols = s->symbols;
	s->sink.languages = languages;
	s->language = (struct shim_language){ .languages = languages,
					      .m = m,
					      .number = 1u << 31 | ++budget->numbers };
	s->budget = budget;
	s->done = 1;
	vec_add(&s->nodes)->done = true;
	return s;
}

void shim_stacks_free(struct shim_stacks *s)
{
	if (!s)
		return;
	s->budget->room += s->used;
	s->budget->tables += s->tables;
	limits_reserve((int64_t)s->shared);
	unwind_store_free(s->store);
	vec_fini(&s->epochs);
	vec_fini(&s->nodes);
	hash_fini(&s->pcs);
	hash_fini(&s->names);
	hash_fini(&s->stacks);
	vec_fini(&s->pair);
	shim_language_fini(&s->language);
	free(s);
}
