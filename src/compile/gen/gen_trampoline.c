/* Generates the arguments of programs on a BPF trampoline (fentry, fexit). The context has the
 * function's arguments in their order, and its result, as words.
 *
 * The code reads them by helpers, which the verifier replaces by loads. The verifier would track a
 * word loaded directly if the prototype has a pointer for it, but D computes with it as a
 * number. */
#include "compile/gen/gen_private.h"

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

/* Returns the frames on top of the function: the program, the trampoline and, after the return, the
 * function's own. */
uint32_t gen_skipped_frames(const struct gen *g)
{
	return g->attach == ATTACH_FENTRY ? 2 : g->attach == ATTACH_FEXIT ? 3 : 0;
}

/* Returns true when the functions are few enough for a program each, which trampolines need. */
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
