#define _GNU_SOURCE
/* Calls as lines of JSON. */
#include <string.h>

#include "calls/lines_private.h"
#include "render/json.h"

/* Writes the texts of the arguments as JSON strings. */
static void json_args(struct lines *l, const char *text, size_t n)
{
	const char *end = text + n;

	while (n) {
		const char *to = memchr(text, BETWEEN, (size_t)(end - text));

		if (!to)
			to = end;
		json_string(&l->p->o, text, (size_t)(to - text));
		if (to == end)
			break;
		out_char(&l->p->o, ',');
		text = to + 1;
	}
}

static void json_member(struct out *o, const char *name, const char *text)
{
	if (!text)
		return;
	out_printf(o, ",\"%s\":", name);
	json_string(o, text, strlen(text));
}

static void json_stack(struct lines *l, const char *stack)
{
	const char *between = "";

	out_str(&l->p->o, ",\"stack\":[");
	for (const char *at = stack; *at;) {
		const char *nl = strchr(at, '\n');

		at += strspn(at, " >");
		out_str(&l->p->o, between);
		json_string(&l->p->o, at, (size_t)(nl - at));
		between = ",";
		at = nl + 1;
	}
	out_char(&l->p->o, ']');
}

/* Writes a call that was held as a line of JSON. */
void lines_json(struct lines *l, const struct thread *t, struct call *call, uint32_t depth,
		bool ended, uint64_t ns)
{
	const char *name = calls_shown(l->c, &l->s, call->function->name);
	uint64_t wall = call->began + l->p->offset;
	struct out *o = &l->p->o, args, result;

	out_init(&args, NULL);
	out_init(&result, NULL);
	out_str(&args, call->text);
	if (ended) {
		struct out line = l->p->o;

		l->p->o = args;
		lines_params(l, call, l->whole, true);
		args = l->p->o;
		l->p->o = result;
		lines_result(l, call, l->whole);
		result = l->p->o;
		l->p->o = line;
	}
	out_printf(o, "{\"time\":%llu.%06llu,\"tid\":%u,\"depth\":%u,\"function\":",
		   (unsigned long long)(wall / 1000000000),
		   (unsigned long long)(wall % 1000000000 / 1000), t->tid, depth);
	json_string(o, name, strlen(name));
	json_member(o, "caller", calls_caller(call->probe));
	json_member(o, "library", calls_library(l->c, call->probe));
	out_str(o, ",\"args\":[");
	json_args(l, args.v, args.n);
	out_str(o, "],\"result\":");
	if (ended)
		json_string(o, result.v, result.n);
	else
		out_str(o, "null");
	if (ended && lines_failed(l, call)) {
		const char *error = strerrorname_np(lines_errno(l));

		out_str(o, ",\"errno\":");
		json_string(o, error ? error : "?", strlen(error ? error : "?"));
	}
	if (ended) {
		out_str(o, ",\"seconds\":");
		out_printf(o, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
			   (unsigned long long)(ns % 1000000000));
	}
	if (l->c->o->addresses)
		out_printf(o, ",\"address\":\"0x%llx\"", (unsigned long long)call->address);
	if (call->stack)
		json_stack(l, call->stack);
	out_str(o, "}\n");
	out_fini(&args);
	out_fini(&result);
}
