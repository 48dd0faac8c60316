/* Heap dumps of Ruby: the lines of JSON that ObjectSpace.dump_all writes, one for each object. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "memory/graph/source.h"
#include "memory/heapfile/jsonpull.h"

/* A line. */
#define _GNU_SOURCE
struct ruby_object {
	char type[32], imemo[32], name[256], root[64];
	char value[256], file[256];
	uint64_t address, class, size, slot, bytes, line;
	bool has_value;
	VEC(uint64_t) refs;
};

struct rubydump {
	struct jsonpull json;
	struct graph *graph;
	struct ruby_object o;
	struct intern kinds; /* what objects without a class of the program are called */
};

/* Classes of the graph have even keys, kinds odd ones. */
static uint32_t ruby_class_at(struct rubydump *r, uint64_t address)
{
	return graph_class(r->graph, address & ~1ull);
}

static uint32_t ruby_kind(struct rubydump *r, const char *text)
{
	const uint32_t n = graph_classes(r->graph),
		       class = graph_class(r->graph, 2ull * intern_str(&r->kinds, text) | 1);

	if (class == n)
		graph_class_name(r->graph, class, text, strlen(text));
	return class;
}

static void text_keep(const struct jsonpull *j, char *into, size_t size)
{
	size_t n = j->n < size - 1 ? j->n : size - 1;

	memcpy(into, j->text, n);
	into[n] = 0;
}

static uint64_t address_of(const char *text)
{
	const char *p = text + 2;
	uint64_t v = 0;

	if (text[0] == '0' && text[1] == 'x')
		number_take_hex(&p, text + strlen(text), &v);
	return v;
}

static bool refs_read(struct rubydump *r)
{
	bool first = true;

	if (!jsonpull_take(&r->json, '['))
		return false;
	while (jsonpull_next(&r->json, ']', &first)) {
		if (!jsonpull_string(&r->json))
			return false;
		vec_push(&r->o.refs, address_of(r->json.text));
	}
	return !r->json.error;
}

static bool member_read(struct rubydump *r)
{
	struct jsonpull *j = &r->json;
	struct ruby_object *o = &r->o;
	const struct {
		const char *name;
		char *text;
		size_t size;
		uint64_t *address, *number;
	} members[] = {
		{ "address", .address = &o->address },
		{ "class", .address = &o->class },
		{ "type", o->type, sizeof(o->type) },
		{ "imemo_type", o->imemo, sizeof(o->imemo) },
		{ "name", o->name, sizeof(o->name) },
		{ "root", o->root, sizeof(o->root) },
		{ "value", o->value, sizeof(o->value) },
		{ "file", o->file, sizeof(o->file) },
		{ "line", .number = &o->line },
		{ "memsize", .number = &o->size },
		{ "slot_size", .number = &o->slot },
		{ "bytesize", .number = &o->bytes },
	};

	if (!strcmp(j->text, "references"))
		return refs_read(r);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (strcmp(j->text, members[i].name))
			continue;
		if (members[i].number && jsonpull_peek(j) != '"' && jsonpull_peek(j) != 'n')
			return jsonpull_number(j, members[i].number);
		if (members[i].number || jsonpull_peek(j) != '"')
			break;
		o->has_value |= members[i].text == o->value;
		if (!jsonpull_string(j))
			return false;
		if (members[i].address)
			*members[i].address = address_of(j->text);
		else
			text_keep(j, members[i].text, members[i].size);
		return true;
	}
	return jsonpull_skip(j);
}

static bool is_module(const struct ruby_object *o)
{
	return !strcmp(o->type, "CLASS") || !strcmp(o->type, "MODULE");
}

/* Objects of the virtual machine itself have no class of the program. The class of a class is its
 * own singleton class, which says nothing. */
static uint32_t ruby_class(struct rubydump *r)
{
	struct ruby_object *o = &r->o;
	bool imemo = !strcmp(o->type, "IMEMO");
	char text[80];

	if (is_module(o))
		snprintf(text, sizeof(text), "%s", strcmp(o->type, "CLASS") ? "Module" : "Class");
	else if (o->class && !imemo && strcmp(o->type, "ICLASS"))
		return ruby_class_at(r, o->class);
	else
		snprintf(text, sizeof(text), *o->imemo ? "(%s %s)" : "(%s)", o->type, o->imemo);
	return ruby_kind(r, text);
}

static void object_take(struct rubydump *r)
{
	struct ruby_object *o = &r->o;
	struct graph *g = r->graph;

	if (!strcmp(o->type, "ROOT")) {
		for (uint32_t i = 0; i < o->refs.n; i++)
			graph_root(g, o->refs.v[i], *o->root ? o->root : "root");
		return;
	}
	if (!o->address || !strcmp(o->type, "NONE") || !strcmp(o->type, "FREE"))
		return;
	graph_object(g, o->address, ruby_class(r), o->size ?: o->slot);
	for (uint32_t i = 0; i < o->refs.n; i++)
		graph_edge(g, o->refs.v[i], GRAPH_LABEL_NONE, GRAPH_STRONG);
	if (is_module(o)) {
		uint32_t class = ruby_class_at(r, o->address);

		graph_edge(g, o->class, GRAPH_LABEL_NONE, GRAPH_STRONG);
		graph_class_object(g, class, o->address);
		if (*o->name)
			graph_class_name(g, class, o->name, strlen(o->name));
	}
	if (!strcmp(o->type, "STRING") && o->has_value)
		graph_text(g, o->value);
	if (*o->file) {
		graph_number_text(g, graph_label(g, GRAPH_FILE, strlen(GRAPH_FILE)), o->file);
		graph_number(g, graph_label(g, GRAPH_LINE, strlen(GRAPH_LINE)), 'J', o->line);
	}
}

static struct err *rubydump_read_file(const char *path, struct graph *g)
{
	struct unpack in;
	struct rubydump r = { .json.in = &in, .graph = g };
	struct err *e = unpack_open(&in, path, g);

	if (e)
		return e;
	intern_init(&r.kinds);
	while (jsonpull_peek(&r.json)) {
		bool first = true;

		r.o = (struct ruby_object){ .refs.v = r.o.refs.v, .refs.cap = r.o.refs.cap };
		if (!jsonpull_take(&r.json, '{'))
			break;
		while (jsonpull_member(&r.json, &first))
			if (!member_read(&r))
				break;
		if (r.json.error)
			break;
		object_take(&r);
	}
	if (!r.json.error)
		r.json.error = unpack_err(&in);
	if (!r.json.error && unpack_need(&in, 1)) /* a NUL byte is not the end */
		jsonpull_bad(&r.json, "an object");
	vec_fini(&r.o.refs);
	intern_fini(&r.kinds);
	unpack_close(&in);
	return r.json.error;
}

/* A line is an object with the member "type" and an address or a root. */
static bool is_rubydump(const void *head, size_t n)
{
	const char *p = head, *end = memchr(head, '\n', n) ?: p + n;
	size_t line = (size_t)(end - p);

	return line > 2 && *p == '{' && memmem(p, line, "\"type\":", 7) &&
	       (memmem(p, line, "\"root\":", 7) || memmem(p, line, "\"address\":", 10));
}

const struct heap_source heap_source_rubydump = {
	.name = "rubydump",
	.what = "Ruby heap dump",
	.is_file = is_rubydump,
	.read_file = rubydump_read_file,
};
