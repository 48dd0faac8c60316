/* What a program on a BPF trampoline (fentry, fexit) is given: words, the function's arguments in
 * their order, and its result.
 *
 * Helpers read them, which the verifier replaces by loads: loaded straight from the context, a word
 * that the prototype calls a pointer would be one that the verifier tracks, and D computes with it
 * as with a number.
 */
#include "compile/ir/gen.h"

enum { HELPER_FUNC_ARG = 183, HELPER_FUNC_RET = 184, REG_ARGS = 6 };

bool gen_on_trampoline(const struct gen *g)
{
	return g->attach == ATTACH_FENTRY || g->attach == ATTACH_FEXIT;
}

static uint32_t word_object(struct gen *g)
{
	uint32_t obj = ir_new_object(g->f, 8, "word");

	ir_store_stack(g->f, obj, 0, 8, IR_I(0));
	return obj;
}

static struct ir_val argument(struct gen *g, uint32_t n)
{
	uint32_t obj = word_object(g);

	(void)ir_call(g->f, HELPER_FUNC_ARG, 3, g->ctx, IR_I(n), ir_stack(g->f, obj, 0));
	return ir_load_stack(g->f, obj, 0, 8, false);
}

static struct ir_val result(struct gen *g)
{
	uint32_t obj = word_object(g);

	(void)ir_call(g->f, HELPER_FUNC_RET, 2, g->ctx, ir_stack(g->f, obj, 0));
	return ir_load_stack(g->f, obj, 0, 8, false);
}

struct ir_val gen_trampoline_reg(struct gen *g, enum user_reg reg)
{
	switch (reg) {
	case UREG_RDI: return argument(g, 0);
	case UREG_RSI: return argument(g, 1);
	case UREG_RDX: return argument(g, 2);
	case UREG_RCX: return argument(g, 3);
	case UREG_R8: return argument(g, 4);
	case UREG_R9: return argument(g, 5);
	case UREG_RAX: return result(g);
	default: return IR_I(0);
	}
}

struct ir_val gen_trampoline_stack(struct gen *g, int64_t disp)
{
	return argument(g, REG_ARGS + (uint32_t)(disp / 8) - 1);
}

/* The program and the trampoline lie on top of the function; of one that has returned, its own
 * frame, too. */
uint32_t gen_skipped_frames(const struct gen *g)
{
	return g->attach == ATTACH_FENTRY ? 2 : g->attach == ATTACH_FEXIT ? 3 : 0;
}

/* Few enough to have a program each, which is what a trampoline needs? */
static bool few(struct gen *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->probes.n; i++) {
		enum attach_kind kind = g->probes.v[i].probe->kind;

		n += kind == ATTACH_KPROBE || kind == ATTACH_KRETPROBE;
	}
	return n && n <= g->target->fentry_max(g->types, g->options);
}

bool gen_trampolines(struct gen *g)
{
	if (!g->trampolines)
		g->trampolines = g->target->fentry_max && few(g) ? 1 : -1;
	return g->trampolines > 0;
}
