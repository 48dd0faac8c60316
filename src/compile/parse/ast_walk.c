/* Finds the nodes below a node, and calls a function for each node of a bound tree. */
#include "compile/parse/ast.h"

struct node_lists node_lists(const struct node *n)
{
	switch (n->kind) {
	case N_AGG: return (struct node_lists){ { n->agg.keys } };
	case N_CALL: return (struct node_lists){ { n->call.args } };
	case N_MEMBER:
	case N_PMEMBER: return (struct node_lists){ { n->member.a } };
	case N_CAST:
	case N_XLATE: return (struct node_lists){ { n->t.a } };
	case N_INDEX:
	case N_UNARY:
	case N_BINARY:
	case N_ASSIGN:
	case N_TERNARY:
	case N_COMMA:
	case N_SIZEOF:
	case N_STRINGOF: return (struct node_lists){ { n->e.a, n->e.b, n->e.c } };
	case N_BODY: return (struct node_lists){ { n->fn.args, n->fn.body } };
	case S_LOOP: return (struct node_lists){ { n->loop.cond, n->loop.step, n->loop.body } };
	case S_IF: return (struct node_lists){ { n->cond.cond, n->cond.then, n->cond.els } };
	case S_BLOCK:
	case S_RETURN:
	case S_EXPR: return (struct node_lists){ { n->block.body } };
	case S_LOCAL: return (struct node_lists){ { n->local.value } };
	case D_CLAUSE: return (struct node_lists){ { n->clause.pred, n->clause.body } };
	case D_FUNC:
	case D_INLINE: return (struct node_lists){ { n->inl.value } };
	case D_TRANSLATOR: return (struct node_lists){ { n->xlator.members } };
	default: return (struct node_lists){ 0 };
	}
}

void node_walk(const struct node *n, void (*fn)(void *arg, const struct node *n), void *arg)
{
	for (; n; n = n->next) {
		struct node_lists below = node_lists(n);

		fn(arg, n);
		for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
			node_walk(below.list[i], fn, arg);
	}
}
