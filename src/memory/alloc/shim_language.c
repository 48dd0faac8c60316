/* Gives walks the places of an interpreter's structures, and reads the names of its functions. */
#define _GNU_SOURCE
#include "memory/alloc/shim_language.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { NAMES_NS = 20000000 }; /* of a pass; also how long a ticket may stay without its request */

/* Walks read by plain loads, and must not when the interpreter frees what they read. */
static bool says_its_end(const struct wire_language *facts)
{
	return facts->frames == WIRE_LANGUAGE_RUBY ? facts->ruby.vm_main : facts->python.finalizing;
}

void shim_language_find(struct shim_language *l, struct unwind_store *store)
{
	struct wire_language facts;
	const uint64_t left_out = languages_left_out(l->languages);
	uint32_t ms = 0;

	l->again_ns = 0;
	if (!languages_find(l->languages, l->pid, l->number, &facts, &ms)) {
		l->address = 0;
		if (ms)
			l->again_ns = now_ns() + ms * 1000000ull;
		if (languages_left_out(l->languages) != left_out)
			l->m->names_gave_up = 1; /* the reads of this run took too long */
		return;
	}
	if (facts.frames >= WIRE_LANGUAGE_JAVA) /* their functions have native frames */
		return;
	if (!says_its_end(&facts)) {
		l->m->names_gave_up = 1;
		return;
	}
	l->address = unwind_store_words_at(store, l->address, &facts, WIRE_LANGUAGE_WORDS,
					   WIRE_LANGUAGE_WORDS);
}

void shim_language_publish(struct shim_language *l)
{
	uint64_t start = 0, size = 0;

	if (l->address && !languages_loop(l->languages, l->pid, &start, &size))
		start = size = 0;
	l->m->loop = start;
	l->m->loop_size = size;
	l->m->pid = (uint32_t)l->pid;
	l->m->language = size ? l->address : 0;
}

/* Reads a request. Returns false when its thread has not written it yet. */
static bool take_request(struct shim_language *l, uint32_t ticket, struct wire_unwind_ask *ret)
{
	const struct wire_alloc_name *from = &l->m->names[ticket % WIRE_ALLOC_NAMES];

	if (__atomic_load_n(&from->ticket, __ATOMIC_ACQUIRE) != ticket)
		return false;
	*ret = (struct wire_unwind_ask){ .pid = (uint32_t)l->pid,
					 .what = WIRE_UNWIND_ASK_CODE,
					 .code = __atomic_load_n(&from->code, __ATOMIC_RELAXED),
					 .entry = __atomic_load_n(&from->entry, __ATOMIC_RELAXED),
					 .id = __atomic_load_n(&from->id, __ATOMIC_RELAXED) };
	return true;
}

bool shim_language_asked(const struct shim_language *l)
{
	return __atomic_load_n(&l->m->names_asked, __ATOMIC_SEQ_CST) != l->served;
}

bool shim_language_names(struct shim_language *l, bool (*is_same)(const void *arg), const void *arg)
{
	const uint64_t began = now_ns();
	uint32_t asked = __atomic_load_n(&l->m->names_asked, __ATOMIC_SEQ_CST), served = l->served;
	const bool may_read = is_same(arg);
	bool any = false;
	struct wire_unwind_ask ask;

	if (asked - served > WIRE_ALLOC_NAMES) /* it was forged */
		served = asked - 1;
	for (; served != asked && now_ns() - began < NAMES_NS; served++) {
		if (!take_request(l, served + 1, &ask)) {
			l->unfilled = l->unfilled ?: began;
			if (now_ns() - l->unfilled < NAMES_NS)
				break;
		} else if (may_read) {
			languages_learn(l->languages, l->pid, &ask);
			any |= languages_known(l->languages, l->pid, ask.id);
		}
		l->unfilled = 0;
	}
	if (any && is_same(arg))
		l->m->names_known = 1;
	if (served != l->served) {
		l->served = served;
		__atomic_store_n(&l->m->names_served, served, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &l->m->names_served, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
	return served == asked;
}

/* --- stacks --- */

static bool names_loop(const void *runtime, uint64_t addr)
{
	return runtime && runtime_is_loop(runtime, addr);
}

static bool names_part(const void *runtime, uint64_t addr)
{
	return runtime && runtime_is_part(runtime, addr);
}

/* A function of C has the place of its caller. Changes such words. Most are those of the stack
 * before. */
static void call_words(struct shim_language *l, shim_pcs_vec *words)
{
	uint64_t caller = 0;
	uint32_t same = 0;

	for (uint32_t i = words->n; i-- > 0;) {
		struct shim_pc *w = &words->v[i];
		const uint64_t word = w->pc;
		uint64_t called = word;

		if (same < l->called.n && l->called.v[same].word == word) {
			called = l->called.v[same].called;
		} else {
			l->called.n = same;
			if (same)
				called = languages_called(l->languages, l->pid, word, caller);
			vec_push(&l->called, (struct shim_called){ word, called });
		}
		same++;
		if (called != word)
			*w = (struct shim_pc){ .pc = called };
		caller = called;
	}
}

void shim_language_merge(struct shim_language *l, const shim_pcs_vec *native, bool whole,
			 shim_pcs_vec *words, shim_pcs_vec *ret)
{
	VEC(uint64_t) pcs = { 0 };
	VEC(struct runtime_frame) frames = { 0 };
	runtime_merged_vec merged = { 0 };
	struct runtime_stack st = { .whole = whole,
				    .is_loop = names_loop,
				    .is_part = names_part,
				    .arg = languages_runtime(l->languages, l->pid) };

	call_words(l, words);
	for (uint32_t i = 0; i < words->n; i++)
		vec_push(&frames,
			 (struct runtime_frame){ .entry = words->v[i].pc & WIRE_LANGUAGE_ENTRY });
	for (uint32_t i = 0; i < native->n; i++)
		vec_push(&pcs, native->v[i].pc);
	st.pcs = pcs.v;
	st.n = pcs.n;
	st.frames = frames.v;
	st.nframes = frames.n;
	runtime_merge(&st, false, &merged);
	for (uint32_t i = 0; i < merged.n; i++) {
		const struct runtime_merged at = merged.v[i];

		vec_push(ret, at.language ? words->v[at.index] : native->v[at.index]);
	}
	vec_fini(&pcs);
	vec_fini(&frames);
	vec_fini(&merged);
}

void shim_language_fini(struct shim_language *l)
{
	vec_fini(&l->called);
}
