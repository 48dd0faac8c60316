/* Passes over IR: dead code, verifier, printer. */
#include "compile/ir/ir.h"

static const char *const op_names[] = {
#define X(id, name) name,
	IR_OPS(X)
#undef X
};
static const char *const alu_names[] = {
#define X(id, name) name,
	IR_ALUS(X)
#undef X
};
static const char *const cond_names[] = {
#define X(id, name) name,
	IR_CONDS(X)
#undef X
};

static bool is_pure(const struct ir_ins *ins)
{
	switch (ins->op) {
	case IR_MOV:
	case IR_BIN:
	case IR_NEG:
	case IR_EXT:
	case IR_SWAP:
	case IR_LOAD:
	case IR_STACK:
	case IR_LOAD_STACK:
	case IR_MAP:
	case IR_MAP_VALUE: return true;
	default: return false;
	}
}

static void count_use(uint32_t *uses, struct ir_val v)
{
	if (v.kind == IR_REG)
		uses[v.reg]++;
}

/* Counts all uses. In a loop, an instruction below may be used above in the next round. Then only
 * instructions without any use are dropped. */
static void count_all(const struct ir_fn *f, uint32_t *uses)
{
	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		count_use(uses, ins->a);
		count_use(uses, ins->b);
		for (uint32_t k = 0; k < ins->nargs; k++)
			count_use(uses, ins->args[k]);
	}
}

/* gives: no pure instruction without a use.   keeps: order, labels, effects. */
void ir_remove_dead(struct ir_fn *f)
{
	uint32_t *uses = xcalloc(f->nregs + 1, sizeof(*uses));
	bool *keep = xcalloc(f->ins.n + 1, sizeof(*keep));
	uint8_t *target = xcalloc(f->nlabels + 1, 1);
	bool reachable = true, loops = false;
	uint32_t out = 0;

	for (uint32_t i = 0; i < f->ins.n; i++) {
		struct ir_ins *ins = &f->ins.v[i];

		if (ins->op == IR_LABEL && target[ins->index])
			reachable = true;
		keep[i] = reachable;
		if (!reachable)
			continue;
		if (ins->op == IR_IF || ins->op == IR_GOTO)
			target[ins->index] = 1;
		loops |= ins->op == IR_LOOP;
		if (ins->op == IR_GOTO || ins->op == IR_LOOP || ins->op == IR_RET)
			reachable = false;
	}
	if (loops)
		count_all(f, uses);
	for (uint32_t i = f->ins.n; i-- > 0;) {
		struct ir_ins *ins = &f->ins.v[i];

		if (keep[i] && is_pure(ins) && !uses[ins->d])
			keep[i] = false;
		if (!keep[i])
			continue;
		count_use(uses, ins->a);
		count_use(uses, ins->b);
		for (uint32_t k = 0; k < ins->nargs; k++)
			count_use(uses, ins->args[k]);
	}
	for (uint32_t i = 0; i < f->ins.n; i++)
		if (keep[i])
			f->ins.v[out++] = f->ins.v[i];
	f->ins.n = out;
	free(uses);
	free(keep);
	free(target);
}

static bool used_defined(const bool *defined, struct ir_val v)
{
	return v.kind != IR_REG || defined[v.reg];
}

bool ir_verify(const struct ir_fn *f, const char **ret_why)
{
	cleanup_free bool *defined = xcalloc(f->nregs + 1, sizeof(bool));
	cleanup_free uint8_t *placed = xcalloc(f->nlabels + 1, 1);

	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		*ret_why = "register used before it is defined";
		if (!used_defined(defined, ins->a) || !used_defined(defined, ins->b))
			return false;
		for (uint32_t k = 0; k < ins->nargs; k++)
			if (!used_defined(defined, ins->args[k]))
				return false;
		*ret_why = "branch backwards";
		if ((ins->op == IR_IF || ins->op == IR_GOTO) && placed[ins->index])
			return false;
		*ret_why = "loop forwards";
		if (ins->op == IR_LOOP && !placed[ins->index])
			return false;
		*ret_why = "label placed twice";
		if (ins->op == IR_LABEL && placed[ins->index]++)
			return false;
		if (ins->d)
			defined[ins->d] = true;
	}
	*ret_why = "branch to a label that is not placed";
	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		if ((ins->op == IR_IF || ins->op == IR_GOTO) && !placed[ins->index])
			return false;
	}
	*ret_why = "function does not end in ret";
	return f->ins.n && f->ins.v[f->ins.n - 1].op == IR_RET;
}

static void print_val(FILE *out, struct ir_val v)
{
	if (v.kind == IR_REG)
		fprintf(out, "v%u", v.reg);
	else if (v.kind == IR_IMM && (v.imm > 0xffffffffll || v.imm < -0x80000000ll))
		fprintf(out, "%#llx", (unsigned long long)v.imm);
	else if (v.kind == IR_IMM)
		fprintf(out, "%lld", (long long)v.imm);
	else
		fputs("-", out);
}

static void print_mem(FILE *out, const struct ir_ins *ins)
{
	fprintf(out, "%c%u[", ins->sign ? 's' : 'u', ins->size * 8u);
	print_val(out, ins->a);
	if (ins->off)
		fprintf(out, " %c %d", ins->off < 0 ? '-' : '+', abs(ins->off));
	fputc(']', out);
}

static void print_ins(FILE *out, const struct ir_fn *f, const struct ir_ins *ins)
{
	if (ins->op == IR_LABEL) {
		fprintf(out, "L%u:\n", ins->index);
		return;
	}
	fputc('\t', out);
	if (ins->d)
		fprintf(out, "v%u = ", ins->d);
	switch (ins->op) {
	case IR_MOV: print_val(out, ins->a); break;
	case IR_BIN:
		print_val(out, ins->a);
		fprintf(out, " %s ", alu_names[ins->sub]);
		print_val(out, ins->b);
		break;
	case IR_NEG:
		fputc('-', out);
		print_val(out, ins->a);
		break;
	case IR_EXT:
	case IR_SWAP:
		fprintf(out, "%s.%c%u ", op_names[ins->op], ins->sign ? 's' : 'u', ins->size * 8u);
		print_val(out, ins->a);
		break;
	case IR_LOAD: print_mem(out, ins); break;
	case IR_STORE:
	case IR_ADD_MEM:
	case IR_XCHG:
		fprintf(out, "%s ", op_names[ins->op]);
		print_mem(out, ins);
		fputs(", ", out);
		print_val(out, ins->b);
		break;
	case IR_STACK:
		fprintf(out, "&%s.%u + %d", f->objects.v[ins->index].what, ins->index, ins->off);
		break;
	case IR_LOAD_STACK:
		fprintf(out, "%c%u[%s.%u + %d]", ins->sign ? 's' : 'u', ins->size * 8u,
			f->objects.v[ins->index].what, ins->index, ins->off);
		break;
	case IR_STORE_STACK:
		fprintf(out, "store u%u[%s.%u + %d], ", ins->size * 8u,
			f->objects.v[ins->index].what, ins->index, ins->off);
		print_val(out, ins->b);
		break;
	case IR_MAP: fprintf(out, "map %u", ins->index); break;
	case IR_MAP_VALUE: fprintf(out, "&map %u + %lld", ins->index, (long long)ins->a.imm); break;
	case IR_ARG: fprintf(out, "%s %lld", op_names[ins->op], (long long)ins->a.imm); break;
	case IR_CALL:
	case IR_ROUTINE:
		if (ins->op == IR_ROUTINE)
			fprintf(out, "%s(", ins->name);
		else
			fprintf(out, "%s %u(", op_names[ins->op], ins->index);
		for (uint32_t k = 0; k < ins->nargs; k++) {
			fputs(k ? ", " : "", out);
			print_val(out, ins->args[k]);
		}
		fputc(')', out);
		break;
	case IR_IF:
		fputs("if ", out);
		print_val(out, ins->a);
		fprintf(out, " %s ", cond_names[ins->sub]);
		print_val(out, ins->b);
		fprintf(out, " goto L%u", ins->index);
		break;
	case IR_GOTO:
	case IR_LOOP: fprintf(out, "%s L%u", op_names[ins->op], ins->index); break;
	default: fprintf(out, "%s ", op_names[ins->op]); print_val(out, ins->a);
	}
	fputc('\n', out);
}

void ir_print(FILE *out, const struct ir_fn *f)
{
	fprintf(out, "fn %s:\n", f->name);
	for (uint32_t i = 0; i < f->ins.n; i++)
		print_ins(out, f, &f->ins.v[i]);
}
