/* The other processes of a recording, which the file of the command's first program lists
 * (INFO "process=PID, parent, calls, lost calls, file, command", with tabs between). */
#include <stdlib.h>
#include <string.h>

#include "memory/alloc/alloc_report.h"
#include "render/json.h"

enum { COMMAND_SHOWN = 100 };

struct listed_process {
	uint64_t pid, parent, calls, lost;
	struct alloc_text file, command;
};

/* Splits at the next tab. Returns false when the text has no more tabs. */
static bool split_text(struct alloc_text *from, struct alloc_text *ret)
{
	const char *tab = memchr(from->text, '\t', from->len);

	if (!tab)
		return false;
	ret->text = from->text;
	ret->len = (uint32_t)(tab - from->text);
	from->len -= ret->len + 1;
	from->text = tab + 1;
	return true;
}

static bool parse_listed(const struct alloc_text *info, struct listed_process *ret)
{
	static const char prefix[] = "process=";
	struct alloc_text rest = *info, number;
	uint64_t *const numbers[] = { &ret->pid, &ret->parent, &ret->calls, &ret->lost };

	if (info->len < strlen(prefix) || memcmp(info->text, prefix, strlen(prefix)))
		return false;
	rest.text += strlen(prefix);
	rest.len -= (uint32_t)strlen(prefix);
	for (uint32_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!split_text(&rest, &number))
			return false;
		*numbers[i] = strtoull(number.text, NULL, 10);
	}
	if (!split_text(&rest, &ret->file))
		return false;
	ret->command = rest;
	return true;
}

static int by_calls(const void *a, const void *b)
{
	const struct listed_process *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Returns the list, those with most calls first. The caller frees it. */
static struct listed_process *list_processes(const struct alloc_trace *t, uint32_t *ret_n)
{
	VEC(struct listed_process) list = { 0 };
	struct listed_process p;

	for (uint32_t i = 0; i < t->infos.n; i++)
		if (parse_listed(&t->infos.v[i], &p))
			vec_push(&list, p);
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_calls);
	*ret_n = list.n;
	return list.v;
}

void report_print_processes(const struct alloc_trace *t, struct out *o)
{
	uint32_t n;
	struct listed_process *v = list_processes(t, &n);

	if (n)
		out_printf(o, "\n%10s %10s %12s  FILE, COMMAND\n", "PROCESS", "PARENT", "CALLS");
	for (uint32_t i = 0; i < n; i++) {
		const struct listed_process *p = &v[i];
		const bool cut = p->command.len > COMMAND_SHOWN;

		out_printf(o, "%10llu %10llu %12llu  %.*s  %.*s%s", (unsigned long long)p->pid,
			   (unsigned long long)p->parent, (unsigned long long)p->calls,
			   (int)p->file.len, p->file.text,
			   (int)(cut ? COMMAND_SHOWN : p->command.len), p->command.text,
			   cut ? "..." : "");
		if (p->lost)
			out_printf(o, "  (%llu CALLS WERE LOST)", (unsigned long long)p->lost);
		out_char(o, '\n');
	}
	free(v);
}

void report_json_processes(const struct alloc_trace *t, struct out *o)
{
	uint32_t n;
	struct listed_process *v = list_processes(t, &n);

	out_str(o, ",\"processes\":[");
	for (uint32_t i = 0; i < n; i++) {
		out_printf(o,
			   "%s{\"pid\":%llu,\"parent\":%llu,\"calls\":%llu,\"lost\":%llu,\"file\":",
			   i ? "," : "", (unsigned long long)v[i].pid,
			   (unsigned long long)v[i].parent, (unsigned long long)v[i].calls,
			   (unsigned long long)v[i].lost);
		json_string(o, v[i].file.text, v[i].file.len);
		out_str(o, ",\"command\":");
		json_string(o, v[i].command.text, v[i].command.len);
		out_char(o, '}');
	}
	out_char(o, ']');
	free(v);
}
