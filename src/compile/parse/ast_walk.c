#include "compile/parse/ast.h"

void node_walk(const struct node *n, void (*fn)(void *arg, const struct node *n), void *arg)
{
	for (; n; n = n->next) {
		fn(arg, n);
		switch (n->kind) {
		case N_AGG: node_walk(n->agg.keys, fn, arg); break;
		case N_CALL: node_walk(n->call.args, fn, arg); break;
		case N_MEMBER:
		case N_PMEMBER: node_walk(n->member.a, fn, arg); break;
		case N_CAST: node_walk(n->t.a, fn, arg); break;
		case N_INDEX:
		case N_UNARY:
		case N_BINARY:
		case N_ASSIGN:
		case N_TERNARY:
		case N_COMMA:
		case N_STRINGOF:
			node_walk(n->e.a, fn, arg);
			node_walk(n->e.b, fn, arg);
			node_walk(n->e.c, fn, arg);
			break;
		case N_BODY:
			node_walk(n->fn.args, fn, arg);
			node_walk(n->fn.body, fn, arg);
			break;
		case S_LOOP:
			node_walk(n->loop.cond, fn, arg);
			node_walk(n->loop.step, fn, arg);
			node_walk(n->loop.body, fn, arg);
			break;
		case S_IF:
			node_walk(n->cond.cond, fn, arg);
			node_walk(n->cond.then, fn, arg);
			node_walk(n->cond.els, fn, arg);
			break;
		case S_BLOCK:
		case S_RETURN:
		case S_EXPR: node_walk(n->block.body, fn, arg); break;
		default: break;
		}
	}
}
