/* Compiles a program: verifies it, then writes code in passes until all offsets are final. */
#include "compile/jit/jit_private.h"

#include <assert.h>

enum {
	STAY = 256, /* bytes: a program without calls stays on the traced program's stack */
	LINE = 64,  /* bytes of a line of the processor's cache */
	PASSES = 64,
	SHORT = 64, /* instructions: a program of so many is written out in a thunk */
};

static struct err *check_env(const struct jit_env *env)
{
	if (env->area_size < sizeof(struct wire_area) || env->shared < env->area ||
	    env->shared - env->area > env->area_size - sizeof(struct wire_common))
		return err_new(0, "the area is too small");
	for (uint32_t i = 0; i < env->nmaps; i++) {
		const struct wire_map *m = &env->maps[i];
		bool array = m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
			     m->kind == WIRE_MAP_AGG_ARRAY;

		if (m->kind >= WIRE_MAP_KINDS)
			return err_new(0, "map %u: unknown kind %u", i, m->kind);
		if (array && (!m->max_entries || m->max_entries > INT32_MAX ||
			      m->stride > INT32_MAX || m->value_size > m->stride))
			return err_new(0, "map %u: %u values of %u bytes, %u apart", i,
				       m->max_entries, m->value_size, m->stride);
	}
	return NULL;
}

static bool uses_r10(const struct jit *j)
{
	for (uint32_t i = 0; i < j->ninsns; i++) {
		const struct bpf_insn *ins = &j->insns[i];

		if (!j->facts.insn[i].reached || j->facts.insn[i].dead)
			continue;
		if (ins->dst_reg == BPF_REG_10 ||
		    (ins->src_reg == BPF_REG_10 && BPF_CLASS(ins->code) != BPF_LD))
			return true;
	}
	return j->data != 0;
}

/* Returns true when the first function can be written out in a thunk. A function with checks
 * cannot, because a violation needs its return address. */
static bool short_main(const struct jit *j)
{
	const struct jit_fn *fn = &j->facts.fns[0];
	uint32_t n = 0;

	for (uint32_t i = fn->start; i < fn->end; i++)
		n += j->facts.insn[i].reached && !j->facts.insn[i].dead;
	return n <= SHORT && !j->facts.checks && !j->facts.budget_used && !j->facts.frames;
}

struct marks {
	uint32_t thunk[WIRE_STUB_ALL], host, find, nested, clock, reserve, cpu, signals, stop,
		range, consts, zeros, size;
	uint32_t clobbered;
};

/* Returns whether the program has a thunk for stub kind k. Programs of system calls and of events
 * only have their own thunks, and both have the thunks that record calls. */
static bool has_thunk(const struct jit_env *env, int k)
{
	if (k >= WIRE_STUB_EVENTS)
		return env->events >> (k - WIRE_STUB_EVENTS) & 1;
	if (k == WIRE_STUB_SYSNOTE || k == WIRE_STUB_SYSFORK)
		return env->syscalls || env->events;
	return env->events ? false : (k >= WIRE_STUB_KINDS) == env->syscalls;
}

/* Writes all code once. Code further on is assumed to be where the pass before had it. */
static void pass(struct jit *j, struct marks *m)
{
	j->b.n = 0;
	j->ncold = 0;
	j->clobbered = 0;
	j->rax_used = false;
	j->loaded_for = UINT32_MAX;
	jit_functions(j);
	jit_pieces(j);
	jit_thunk_pieces(j);
	for (int k = 0; k < WIRE_STUB_ALL; k++) {
		if (!has_thunk(j->env, k))
			continue;
		x86_align(&j->b, LINE, 0xcc);
		m->thunk[k] = j->b.n;
		jit_thunk(j, (enum wire_stub_kind)k);
	}
	x86_align(&j->b, 16, 0xcc);
	m->host = j->b.n;
	jit_host(j);
	m->find = j->find;
	m->nested = j->nested;
	m->clock = j->clock;
	m->reserve = j->reserve;
	m->cpu = j->cpu;
	m->signals = j->signals;
	m->stop = j->stop;
	m->range = j->range;
	m->consts = j->consts;
	m->zeros = j->zeros;
	m->size = j->b.n;
	m->clobbered = j->clobbered;
}

struct err *jit_compile(const struct bpf_insn *insns, uint32_t ninsns, const struct jit_env *env,
			struct jit_code *ret)
{
	cleanup_free struct bpf_insn *own = xmemdup(insns, ninsns * sizeof(*insns));
	struct jit j = { .insns = own, .ninsns = ninsns, .env = env };
	struct marks m, before = { 0 };
	cleanup_free uint32_t *fns = NULL;
	struct err *e = check_env(env);
	int rounds = 0;
	bool same;

	e = e ?: jit_verify(own, ninsns, env, &j.facts);
	if (e) {
		jit_facts_fini(&j.facts);
		return e;
	}
	j.data = (j.facts.fns[0].data + 15) & ~15u;
	j.uses_r10 = uses_r10(&j);
	j.probe_stack =
		env->events || j.facts.calls || j.facts.checks || j.facts.budget_used ||
		j.data + (j.facts.ctx_used ? JIT_CTX : 0) +
				(j.facts.frames ? j.facts.fns[0].depth * JIT_NATIVE_FRAME : 0) >
			STAY;
	j.at = xcalloc(ninsns + 1, sizeof(*j.at));
	j.guess = xmalloc((ninsns + 1) * sizeof(*j.guess));
	memset(j.guess, 0xff, (ninsns + 1) * sizeof(*j.guess));
	j.short_main = short_main(&j);
	j.in_at = xcalloc(ninsns + 1, sizeof(*j.in_at));
	j.in_guess = xmemdup(j.guess, (ninsns + 1) * sizeof(*j.guess));
	j.fn_at = xcalloc(j.facts.nfns, sizeof(*j.fn_at));
	fns = xcalloc(j.facts.nfns, sizeof(*fns));
	/* Code only gets shorter from pass to pass. Repeat until nothing moves. */
	do {
		memset(&m, 0, sizeof(m));
		pass(&j, &m);
		same = !memcmp(&m, &before, sizeof(m)) &&
		       !memcmp(fns, j.fn_at, j.facts.nfns * sizeof(*fns)) &&
		       !memcmp(j.at, j.guess, (ninsns + 1) * sizeof(*j.at)) &&
		       (!j.short_main ||
			!memcmp(j.in_at, j.in_guess, (ninsns + 1) * sizeof(*j.in_at)));
		before = m;
		memcpy(fns, j.fn_at, j.facts.nfns * sizeof(*fns));
		memcpy(j.guess, j.at, (ninsns + 1) * sizeof(*j.at));
		memcpy(j.in_guess, j.in_at, (ninsns + 1) * sizeof(*j.in_at));
		rounds++;
		assert(rounds < PASSES);
	} while (!same);

	for (uint32_t i = 0; i < j.facts.nfns; i++)
		for (uint32_t k = j.facts.fns[i].start; k < j.facts.fns[i].end; k++)
			if (!j.facts.fns[i].reached)
				j.at[k] = JIT_NO_CODE;
	*ret = (struct jit_code){
		.bytes = j.b.p,
		.size = j.b.n,
		.host = m.host,
		.insn_at = j.at,
		.ninsns = ninsns,
		.nproven = j.facts.nproven,
		.steered = j.facts.steered,
		.nchecked = j.facts.nchecked,
	};
	memcpy(ret->thunk, m.thunk, sizeof(m.thunk));
	if (j.probe_stack)
		ret->stack = j.native + j.facts.fns[0].depth * JIT_NATIVE_FRAME;
	free(j.guess);
	free(j.in_at);
	free(j.in_guess);
	free(j.exits);
	free(j.fn_at);
	free(j.cold);
	jit_facts_fini(&j.facts);
	return NULL;
}

void jit_code_fini(struct jit_code *c)
{
	free(c->bytes);
	free(c->insn_at);
	memset(c, 0, sizeof(*c));
}
