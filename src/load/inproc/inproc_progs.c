/* Programs: links and compiles them, and writes them into the code mapping. BEGIN, END and timers
 * run in this process. */
#include <cpuid.h>
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "isa/bpf_insn.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/memory/agent_blob.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/islands.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/prog_run.h"

enum { CODE_ALIGN = 64 };
static int32_t map_number(void *arg, uint32_t index)
{
	return (int32_t)index;
}

static bool has_rdpid(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_RDPID;
}

static bool has_lzcnt(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && c & bit_LZCNT;
}

/* Replaces calls of routines that the agent or the compiler has as machine code. */
static void use_natives(struct linked *l)
{
	for (uint32_t f = 1; f < l->nfuncs; f++) {
		uint32_t id = jit_native(l->funcs[f].name);

		for (uint32_t i = 0; id && i < l->ninsns; i++) {
			struct bpf_insn *ins = &l->insns[i];

			if (ebpf_is_ld_imm64(ins)) {
				i++;
			} else if (ins->code == (BPF_JMP | BPF_CALL) &&
				   ins->src_reg == BPF_PSEUDO_CALL &&
				   (int64_t)i + 1 + ins->imm == l->funcs[f].start) {
				ins->src_reg = 0;
				ins->imm = (int32_t)id;
			}
		}
	}
}

/* plain: uses only instructions that every processor has. */
static struct jit_env environment(const struct inproc_engine *e, uint32_t i,
				  const uint64_t *map_addrs, bool plain)
{
	const struct image_prog *p = &e->base.image->progs[i];
	const int globals = image_find_map(e->base.image, MAP_GLOBALS);

	return (struct jit_env){
		.maps = e->maps,
		.map_addrs = map_addrs,
		.nmaps = e->base.image->nmaps,
		.area = (uintptr_t)e->area,
		.area_size = e->area->span,
		.shared = (uintptr_t)e->common,
		.agent = e->addr,
		.head = agent_blob(),
		.private = (uintptr_t)e->private,
		.stacks = e->area->stacks,
		.stack_shift = e->area->stack_shift,
		.identity = (enum wire_identity)e->area->identity,
		.id_disp = e->area->id_disp,
		.code = e->addr + e->room.code_used,
		.rdpid = !plain && has_rdpid(),
		.lzcnt = !plain && has_lzcnt(),
		.tsc = plain || e->area->clock.mult,
		.family = e->area->together,
		.own_reads = e->area->together && e->trust.privileged,
		.own_shared = e->own_shared,
		.event = e->area->together ? (uint32_t)e->area->event : 0,
		.syscalls = inproc_is_syscall(e->base.image->progs[i].attach),
		.events = events_of(e->base.image, i),
		.guards = p->guards,
		.nguards = globals >= 0 ? p->nguards : 0,
		.globals = globals >= 0 ? e->maps[globals].base : 0,
	};
}

static struct err *compile(struct inproc_engine *e, uint32_t i, const struct jit_env *env)
{
	const struct link_hooks hooks = { .arg = e, .map = map_number };
	struct inproc_prog *p = &e->progs[i];
	struct err *err = link_prog(&e->base.image->progs[i], &hooks, &p->linked);

	err = err ?: ebpf_check(p->linked.insns, p->linked.ninsns, 0);
	if (!err)
		use_natives(&p->linked);
	err = err ?: jit_compile(p->linked.insns, p->linked.ninsns, env, &p->code);
	if (!err && e->room.code_used + p->code.size > WIRE_CODE_SIZE)
		err = err_new(ENOMEM, "%u bytes of machine code do not fit", p->code.size);
	if (err)
		return err_wrap(err, "program %s", e->base.image->progs[i].name);
	p->addr = env->code;
	memcpy(e->code + e->room.code_used, p->code.bytes, p->code.size);
	e->room.code_used = (e->room.code_used + p->code.size + CODE_ALIGN - 1) &
			    ~(uint64_t)(CODE_ALIGN - 1);
	return NULL;
}

struct names {
	const struct image *img;
	const struct linked *linked;
	char text[80];
};

static const char *operand(void *arg, uint32_t insn)
{
	struct names *n = arg;
	const struct bpf_insn *ins = &n->linked->insns[insn];
	const struct image_map *maps = n->img->maps;

	if (ins->code == (BPF_JMP | BPF_CALL)) {
		for (uint32_t f = 0; f < n->linked->nfuncs && ins->src_reg; f++)
			if ((int64_t)insn + 1 + ins->imm == n->linked->funcs[f].start)
				return n->linked->funcs[f].name;
		for (uint32_t f = 1; f < n->linked->nfuncs && !ins->src_reg; f++)
			if (jit_native(n->linked->funcs[f].name) == (uint32_t)ins->imm)
				return n->linked->funcs[f].name;
		return NULL;
	}
	if (!ebpf_is_ld_imm64(ins))
		return NULL;
	switch (ins->src_reg) {
	case BPF_PSEUDO_MAP_FD:
		snprintf(n->text, sizeof(n->text), "map %s", maps[ins->imm].name);
		return n->text;
	case BPF_PSEUDO_MAP_VALUE:
		snprintf(n->text, sizeof(n->text), "&%s + %d", maps[ins->imm].name, ins[1].imm);
		return n->text;
	}
	return NULL;
}

static void inproc_progs_print(FILE *out, const struct image *img, uint32_t i,
			       const struct inproc_prog *p, const struct jit_env *env)
{
	struct names n = { .img = img, .linked = &p->linked };
	const struct ebpf_names names = { .operand = operand, .arg = &n };

	fprintf(out, "program %u: %s, %s\n", i, img->progs[i].name,
		attach_kind_name(img->progs[i].attach));
	jit_print(out, &p->code, p->linked.insns, env, &names);
}

/* out: also prints the programs, as they would be without this processor's special instructions. */
static struct err *compile_all(struct inproc_engine *e, FILE *out)
{
	const struct image *img = e->base.image;
	cleanup_free uint64_t *addrs = xcalloc(img->nmaps + 1, sizeof(*addrs));
	struct err *err = NULL;

	for (uint32_t i = 0; i < img->nmaps; i++)
		addrs[i] = (uintptr_t)&e->maps[i];
	e->progs = xcalloc(img->nprogs + 1, sizeof(*e->progs));
	for (uint32_t i = 0; i < img->nprogs && !err; i++) {
		struct jit_env env = environment(e, i, addrs, out != NULL);

		err = compile(e, i, &env);
		if (out && !err)
			inproc_progs_print(out, img, i, &e->progs[i], &env);
	}
	return err;
}

/* Compiles until the programs agree on the private variables that have something of other
 * processes. Compiling only adds to them. */
static struct err *compile_agreed(struct inproc_engine *e)
{
	const uint64_t begin = e->room.code_used, words = area_own_words(e);
	cleanup_free uint64_t *before = xcalloc(words + 1, sizeof(*before));
	struct err *err;

	for (;;) {
		memcpy(before, e->own_shared, words * sizeof(*before));
		err = compile_all(e, NULL);
		if (err || !memcmp(before, e->own_shared, words * sizeof(*before)))
			return err;
		progs_free(e);
		e->room.code_used = begin;
	}
}

struct err *progs_compile(struct inproc_engine *e)
{
	const uint64_t begin = e->room.code_used;
	struct err *err = compile_all(e, NULL);

	if (err || !forging_steered(e) || !area_own_variables(e))
		return err;
	progs_free(e);
	e->room.code_used = begin;
	return compile_agreed(e);
}

struct err *progs_print(FILE *out, const struct image *img)
{
	struct engine *en = engine_inproc.new(&(struct engine_setting){ 0 });
	struct inproc_engine *e = (struct inproc_engine *)en;
	struct err *err;

	en->image = img;
	err = area_create(e, img);
	err = err ?: compile_all(e, out);
	en->ops->free(en);
	return err;
}

void progs_free(struct inproc_engine *e)
{
	for (uint32_t i = 0; e->progs && i < e->base.image->nprogs; i++) {
		linked_free(&e->progs[i].linked);
		jit_code_fini(&e->progs[i].code);
	}
	free(e->progs);
	e->progs = NULL;
}

/* --- timers --- */

struct err *inproc_start_timers(struct inproc_engine *e)
{
	const struct image *img = e->base.image;
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];

		if (p->attach != ATTACH_TICK && p->attach != ATTACH_PROFILE)
			continue;
		for (uint32_t j = 0; j < p->nprobes; j++) {
			const uint64_t period = img->probes[p->probes[j]].probe->period_ns;

			/* A thread that is due is sampled by its CPU time. */
			timers_add(&e->bells.timers,
				   &(struct timer){ .prog = i,
						    .probe = p->probes[j],
						    .next = now + period,
						    .period = period,
						    .late_is_lost = p->attach == ATTACH_PROFILE });
		}
	}
	return timers_arm(&e->bells.timers);
}

void inproc_run_timers(struct inproc_engine *e)
{
	const uint64_t now = now_ns();
	const struct timer *t;
	int n = 0;

	for (; n < TIMERS_AT_ONCE && (t = timers_take(&e->bells.timers, now)); n++) {
		if (e->base.image->progs[t->prog].attach == ATTACH_PROFILE)
			samples_take(e, t->prog, t->probe, t->period);
		else
			err_free(prog_run(e, t->prog, t->probe));
		islands_turn(e);
	}
	if (n)
		err_free(timers_arm(
			&e->bells.timers)); /* the timer could be set before, so this does not fail */
}
