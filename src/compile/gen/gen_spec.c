/* Generates speculations: speculate(), and the numbers that commit() and discard() take. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

void gen_check_speculation(struct gen *g, struct ir_val id, loc_t loc)
{
	gen_fault_if(g, id, IF_UGT, IR_I(opt_num(g->options, OPT_NSPEC)), WIRE_FAULT_ILLOP, id,
		     loc);
}

void gen_speculate(struct gen *g, const struct node *call)
{
	struct ir_fn *f = g->f;
	uint32_t ok = ir_new_label(f), none = ir_new_label(f);

	ir_set(f, g->spec, gen_expr(g, call->call.args));
	ir_if(f, g->spec, IF_UGT, IR_I(opt_num(g->options, OPT_NSPEC)), none);
	ir_if(f, g->spec, IF_NE, IR_I(0), ok);
	ir_place(f, none);
	gen_bail(g);
	ir_place(f, ok);
	if (g->rec_live)
		ir_store(f, g->rec, offsetof(struct wire_record, spec), 4, g->spec);
}

void gen_free_speculation(struct gen *g, struct ir_val id)
{
	struct ir_fn *f = g->f;
	uint32_t done = ir_new_label(f);
	struct ir_val i = ir_bin(f, ALU_SUB, id, IR_I(1)), at;

	ir_if(f, i, IF_UGE, IR_I(64), done);
	at = ir_bin(f, ALU_ADD,
		    ir_map_value(f, gen_fixed_map(g, MAP_STATE), offsetof(struct wire_state, spec)),
		    ir_bin(f, ALU_SHL, i, IR_I(2)));
	ir_store(f, at, 0, 4, IR_I(0));
	ir_place(f, done);
}
