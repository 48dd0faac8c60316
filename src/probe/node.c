/* Provider node: what a process of Node.js does, `node123:node:FUNCTION:http-server-request`.
 *
 * Node.js has had probes of its own up to version 18, mostly made in JavaScript. These are at
 * functions of V8, llhttp and node that the same events pass, and have the same names. A program
 * without a function's symbol does not have its probe.
 */
#include <string.h>

#include "base/glob.h"
#include "probe/process.h"
#include "probe/provider.h"

enum { MAX_ARGS = 2 };

struct node_row {
	const char *name;
	const char *func; /* pattern of the symbol */
	const char *filter;
	struct {
		const char *type, *expr, *xlate;
	} args[MAX_ARGS];
	const char *note;
};

/* llhttp passes the parts of a path as it reads them. The variables hold those of the parser (arg0)
 * that began a message last in this thread. Of any other parser the path is not known. */
static const char before[] =
	"self uint64_t __node_parser;\n"
	"self string __node_url;\n"
	"pid*::llhttp__on_message_begin:entry {\n"
	"	self->__node_parser = arg0;\n"
	"	self->__node_url = \"\";\n"
	"}\n"
	"pid*::llhttp__on_url:entry /self->__node_parser == arg0/ {\n"
	"	self->__node_url = strjoin(self->__node_url, copyinstr(arg1, arg2 - arg1));\n"
	"}\n";

/* Words of struct pt_regs: uregs[14] is rdi, uregs[13] rsi, uregs[12] rdx. All versions of llhttp
 * have the kind of message at the same place in llhttp_t. */
#define KIND(n) "*(uint8_t *)copyin((uintptr_t)(uregs[14] + 72), 1) == " #n
// clang-format off
#define RDI { "uint64_t", "(uint64_t)uregs[14]", NULL }
#define GC_TYPE { "int", "(int)uregs[13]", NULL }
#define GC_FLAGS { "int", "(int)uregs[12]", NULL }
// clang-format on

static const struct node_row rows[] = {
	{ "gc-start",
	  "_ZN2v88internal4Heap23CallGCPrologueCallbacksENS_6GCTypeENS_15GCCallbackFlagsE*",
	  NULL,
	  { GC_TYPE, GC_FLAGS },
	  "arg0: 1 scavenge, 2 minor and 4 or 8 other kinds, as v8.h's GCType" },
	{ "gc-done",
	  "_ZN2v88internal4Heap23CallGCEpilogueCallbacksENS_6GCTypeENS_15GCCallbackFlagsE*",
	  NULL,
	  { GC_TYPE, GC_FLAGS },
	  "arg0 as of gc-start" },
	{ "http-server-request",
	  "llhttp__on_headers_complete",
	  KIND(1),
	  { { "uint64_t", "(uint64_t)uregs[14]", "node_http_request_t *" } },
	  "the head of a request is complete; HTTP/1 only" },
	{ "http-client-response",
	  "llhttp__on_headers_complete",
	  KIND(2),
	  { RDI },
	  "the head of a response is complete; HTTP/1 only" },
	{ "net-server-connection",
	  "_ZN4node14ConnectionWrapINS_*E12OnConnectionEP11uv_stream_si",
	  "(int)uregs[13] == 0",
	  { RDI },
	  "arg0: the server's uv_stream_t" },
	{ "net-stream-end",
	  "_ZN4node15LibuvStreamWrap8OnUvReadElPK8uv_buf_t",
	  "(int64_t)uregs[13] == -4095",
	  { RDI },
	  "the other end sends no more; also of pipes" },
};

static const char prefix[] = "node";

static bool node_claims(const struct provider *pv, const char *pattern)
{
	const size_t n = sizeof(prefix) - 1;

	if (glob_is_pattern(pattern))
		return true;
	return !strncmp(pattern, prefix, n) && pattern[n] &&
	       !pattern[n + strspn(pattern + n, "0123456789")];
}

static void match_events(struct process_match *m, const struct process_object *po)
{
	uint64_t last[ARRAY_SIZE(rows)] = { 0 };
	uint32_t n;
	const struct object_symbol *s = object_symbols(po->object, &n);

	for (uint32_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			if (!s[i].is_func || s[i].addr == last[k] ||
			    !glob_match(m->pd->name, rows[k].name) ||
			    !glob_match(rows[k].func, s[i].name))
				continue;
			last[k] = s[i].addr;
			process_add_event(m, po, &s[i],
					  &(struct process_event){ .name = rows[k].name,
								   .kind = ATTACH_UPROBE,
								   .filter = rows[k].filter,
								   .note = rows[k].note,
								   .priv = &rows[k] });
		}
}

/* Returns true for the program node, and for the library in which Debian has all of it. Others may
 * have V8 or llhttp, too. */
static bool is_node(const struct process_object *po)
{
	return object_is_x86_64(po->object) &&
	       (!strncmp(po->name, "libnode.so", 10) ||
		(po->is_main && object_find_name(po->object, "node_module_register")));
}

static struct err *match_node(struct process_match *m)
{
	const struct process_objects *objects;
	struct err *e = process_objects(m->ps, m->pid, &objects);

	for (uint32_t i = 0; !e && i < objects->n; i++)
		if (process_object_matches(&objects->v[i], m->pd->mod) && is_node(&objects->v[i]))
			match_events(m, &objects->v[i]);
	return e;
}

static struct err *node_match(const struct provider *pv, struct probe_set *ps,
			      const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct process_match m = { .pv = pv, .ps = ps, .pd = pd, .found = found, .arg = arg };

	return strncmp(pd->prov, prefix, sizeof(prefix) - 1) ? NULL
							     : process_match_each(&m, match_node);
}

static struct err *node_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct node_row *row = p->priv;

	ret->known = true;
	for (uint32_t i = 0; i < MAX_ARGS && row->args[i].type; i++) {
		struct probe_arg a = { .source = ARG_EXPR,
				       .type = provider_type(ps, row->args[i].type),
				       .expr = row->args[i].expr,
				       .xlate = row->args[i].xlate };

		provider_set_arg(ps, ret, i, &a);
	}
	return NULL;
}

const struct provider provider_node = {
	.name = prefix,
	.doc = "what Node.js does in a process: collections, requests, connections; node123:::gc-start",
	.stability = { E_COMMON, P_UNKNOWN, P_UNKNOWN, E_COMMON, E_COMMON },
	.before = before,
	.claims = node_claims,
	.match = node_match,
	.args = node_args,
};
