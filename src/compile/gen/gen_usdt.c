/* Generates the arguments of USDT probes and of probes in interpreters, and what they lead to. */
#include <stdlib.h>

#include "compile/gen/gen_private.h"
#include "wire/language.h"
#include "wire/routines.h"

/* Returns the address of a str's text: see struct usdt_path. */
static struct ir_val python_text(struct gen *g, const struct usdt_path *p, struct ir_val str,
				 loc_t loc)
{
	struct ir_val state, text = ir_new_reg(g->f);
	uint32_t done = ir_new_label(g->f), other = ir_new_label(g->f);

	state = gen_user_read(g, ir_bin(g->f, ALU_ADD, str, IR_I(p->text.state)), 4, false, loc);
	ir_if(g->f, ir_bin(g->f, ALU_AND, state, IR_I(WIRE_PYTHON_ASCII)), IF_EQ, IR_I(0), other);
	ir_set(g->f, text, ir_bin(g->f, ALU_ADD, str, IR_I(p->text.ascii)));
	ir_goto(g->f, done);
	ir_place(g->f, other);
	ir_set(g->f, text,
	       gen_user_read(g, ir_bin(g->f, ALU_ADD, str, IR_I(p->text.utf8)), 8, false, loc));
	ir_place(g->f, done);
	return text;
}

static struct ir_val usdt_path(struct gen *g, const struct usdt_operand *u, struct ir_val v,
			       loc_t loc)
{
	const struct usdt_path *p = &u->path;

	for (uint32_t i = 0; i < p->n; i++) {
		bool last = i + 1 == p->n;

		v = gen_user_read(g, ir_bin(g->f, ALU_ADD, v, IR_I(p->steps[i])),
				  last ? (uint32_t)abs(u->size) : 8, last && u->size < 0, loc);
	}
	return p->text.state ? python_text(g, p, v, loc) : v;
}

/* Returns how far the file of the current uprobe is from its linked addresses. */
static struct ir_val load_bias(struct gen *g)
{
	uint32_t n = g->probes.n;
	struct ir_val at;

	if (!g->probe_addrs) {
		g->probe_addrs = gen_rodata(g, NULL, 8 * n, 8);
		for (uint32_t i = 0; i < n; i++)
			memcpy(g->rodata.v + g->probe_addrs + 8 * i, &g->probes.v[i].probe->addr,
			       8);
	}
	if (g->probe.kind == IR_IMM) {
		at = IR_I(8 * g->probe.imm);
	} else {
		uint32_t known = ir_new_label(g->f);

		at = ir_new_reg(g->f);
		ir_set(g->f, at, IR_I(0));
		ir_if(g->f, g->probe, IF_UGE, IR_I(n), known);
		ir_set(g->f, at, ir_bin(g->f, ALU_SHL, g->probe, IR_I(3)));
		ir_place(g->f, known);
	}
	at = ir_bin(g->f, ALU_ADD, ir_map_value(g->f, gen_fixed_map(g, MAP_RODATA), g->probe_addrs),
		    at);
	return ir_bin(g->f, ALU_SUB, gen_reg_value(g, UREG_RIP), ir_load(g->f, at, 0, 8, false));
}

/* Returns the iseq of the method entry that the operand's path leads to. */
static struct ir_val ruby_leaf_code(struct gen *g, const struct usdt_operand *u,
				    struct ir_val *ret_entry)
{
	struct ir_val v = gen_reg_value(g, u->base);

	for (uint32_t i = 0; i < u->path.n; i++)
		v = gen_user_read(g, ir_bin(g->f, ALU_ADD, v, IR_I(u->path.steps[i])), 8, false, 0);
	*ret_entry = v;
	v = gen_user_read(g, ir_bin(g->f, ALU_ADD, v, IR_I(WIRE_RUBY_METHOD_ABOUT)), 8, false, 0);
	return gen_user_read(g, ir_bin(g->f, ALU_ADD, v, IR_I(WIRE_RUBY_DEFINITION_CODE)), 8, false,
			     0);
}

static struct ir_val ruby_frame(struct gen *g, const struct usdt_operand *u,
				struct ir_val *ret_entry)
{
	if (u->path.n)
		return ruby_leaf_code(g, u, ret_entry);
	*ret_entry = u->index >= 0 ? gen_reg_value(g, u->index) : IR_I(0);
	return ir_bin(g->f, ALU_ADD, gen_reg_value(g, u->base), IR_I(u->disp));
}

static struct ir_val ruby_part(struct gen *g, const struct usdt_operand *u)
{
	struct ir_val entry, frame = ruby_frame(g, u, &entry), bias = load_bias(g);

	return ir_routine(g->f, "d_ruby", 5, frame, entry, IR_I(u->ruby.what | u->ruby.form),
			  ir_bin(g->f, ALU_ADD, bias, IR_I(u->ruby.symbols)),
			  ir_bin(g->f, ALU_ADD, bias, IR_I(u->ruby.unknown)));
}

/* The function of an interpreter that a probe's argument leads to. */
struct function {
	bool ruby;
	struct ir_val frame;
	struct ir_val how; /* Ruby: its method entry, 0: not known. Python: WIRE_PYTHON_PATH() */
};

/* what: the part of a method that an argument of Ruby must be. Returns false for any other
 * argument. */
static bool function_of(struct gen *g, const struct probe_arg *a, uint32_t what,
			struct function *ret)
{
	const struct usdt_operand *u = &a->usdt;
	const struct usdt_path *p = &u->path;

	if (a->source != ARG_USDT)
		return false;
	ret->ruby = u->mode == USDT_RUBY && u->ruby.what == what;
	if (ret->ruby) {
		ret->frame = ruby_frame(g, u, &ret->how);
		return true;
	}
	if (u->mode != USDT_REG || p->n != 2 || !p->text.state)
		return false;
	ret->frame = gen_reg_value(g, u->base);
	ret->how = IR_I(WIRE_PYTHON_PATH(p->steps[0], p->steps[1]));
	return true;
}

bool gen_named_entry(struct gen *g, const struct probe_arg *a, uint32_t map,
		     const struct ir_val *found, struct ir_val *ret)
{
	struct function f;

	if (!function_of(g, a, WIRE_RUBY_IS_METHOD, &f))
		return false;
	*ret = ir_routine(g->f, f.ruby ? "d_agg_ruby" : "d_agg_python", 4, ir_map(g->f, map),
			  f.frame, f.how, found ? *found : IR_I(0));
	return true;
}

bool gen_function_id(struct gen *g, const struct probe_arg *a, uint32_t map, uint32_t salt,
		     struct ir_val *ret)
{
	struct function f;

	if (!function_of(g, a, WIRE_RUBY_IS_CLASS, &f))
		return false;
	*ret = ir_routine(g->f, f.ruby ? "d_id_ruby" : "d_id_python", 4, ir_map(g->f, map), f.frame,
			  f.how, IR_I(salt));
	return true;
}

void gen_unnamed(struct gen *g, const struct probe_arg *a, uint32_t label)
{
	if (a->usdt.mode == USDT_RUBY)
		ir_if(g->f, ruby_part(g, &a->usdt), IF_EQ,
		      ir_bin(g->f, ALU_ADD, load_bias(g), IR_I(a->usdt.ruby.unknown)), label);
}

struct ir_val gen_usdt_operand(struct gen *g, const struct usdt_operand *u, loc_t loc)
{
	uint32_t size = (uint32_t)abs(u->size);
	bool sign = u->size < 0;
	struct ir_val v = IR_I(u->disp);

	switch (u->mode) {
	case USDT_CONST: return v;
	case USDT_RUBY: return ruby_part(g, u);
	case USDT_REG:
		v = gen_reg_value(g, u->base);
		if (u->path.n)
			return usdt_path(g, u, v, loc);
		return ir_ext(g->f, ir_bin(g->f, ALU_SHR, v, IR_I(u->reg_shift)), size, sign);
	default:
		if (gen_on_trampoline(g))
			return ir_ext(g->f, gen_trampoline_stack(g, u->disp), size, sign);
		if (u->base >= 0)
			v = ir_bin(g->f, ALU_ADD, ir_load(g->f, g->ctx, 8 * u->base, 8, false), v);
		if (u->index >= 0)
			v = ir_bin(g->f, ALU_ADD, v,
				   ir_bin(g->f, ALU_MUL,
					  ir_load(g->f, g->ctx, 8 * u->index, 8, false),
					  IR_I(u->scale)));
		return g->attach == ATTACH_KPROBE || g->attach == ATTACH_KRETPROBE
			       ? gen_kernel_read(g, v, 0, size, sign, loc)
			       : gen_user_read(g, v, size, sign, loc);
	}
}
