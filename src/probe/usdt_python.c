/* function-entry of CPython 3.11, whose own note is passed only while line is enabled, too, and
 * function-entry and function-return of 3.13, which has no notes: places in the interpreter's loop
 * instead, and arguments from the frame. */
#include <string.h>

#include "probe/process.h"
#include "probe/usdt.h"
#include "program/runtime/python/python.h"

enum { STATE = 32 }; /* in a str: its kind */

bool usdt_is_python_entry(struct object *o, const struct object_usdt *u)
{
	return !strcmp(u->provider, "python") &&
	       (!u->addr || (!strcmp(u->name, "function__entry") && python_has_entries(o)));
}

const struct object_usdt *usdt_python_unnoted(struct object *o, uint32_t *ret_n)
{
	static const struct object_usdt unnoted[] = {
		{ .provider = "python", .name = "function__entry", .args = "", .func = "" },
		{ .provider = "python", .name = "function__return", .args = "", .func = "" },
	};
	uint32_t n;
	uint64_t addr;
	const struct object_usdt *u = object_usdts(o, &n);

	*ret_n = 0;
	if (!object_symbol_value(o, "PyInterpreterState_Head", &addr))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(u[i].provider, "python") && !strncmp(u[i].name, "function__", 10))
			return NULL;
	*ret_n = ARRAY_SIZE(unnoted);
	return unnoted;
}

/* Returns the operand for a member of the frame's code object. */
static struct usdt_operand of_code(const struct python_layout *l, const struct python_entry *e,
				   uint32_t member, int8_t size)
{
	struct usdt_operand u = { .size = size, .mode = USDT_REG, .index = -1 };

	u.base = usdt_x86_reg(e->frame);
	u.path.n = 2;
	u.path.steps[0] = (int16_t)l->frame_code;
	u.path.steps[1] = (int16_t)member;
	return u;
}

static struct usdt_operand text_of_code(const struct python_layout *l, const struct python_entry *e,
					uint32_t member)
{
	struct usdt_operand u = of_code(l, e, member, 8);

	u.path.text.state = STATE;
	u.path.text.ascii = (uint8_t)l->text_ascii;
	u.path.text.utf8 = (uint8_t)(l->text_ascii + 8); /* of a str that is not ASCII */
	return u;
}

static const char *places_of_file(struct object *o, bool returns, struct usdt_python *ret)
{
	struct python_entries entries;
	const struct python_layout *l;
	const char *reason = returns ? python_returns(o, &entries) : python_entries(o, &entries);

	_Static_assert((int)USDT_PYTHON_PLACES == PYTHON_ENTRIES_MAX, "one each");
	if (reason)
		return reason;
	l = entries.layout;
	ret->n = entries.n;
	for (uint32_t i = 0; i < entries.n; i++) {
		const struct python_entry *e = &entries.v[i];
		struct usdt_python_place *p = &ret->v[i];

		p->addr = e->addr;
		/* file and name are neighbours; the layout's code_name is the qualified one */
		p->args[0] = text_of_code(l, e, l->code_file);
		p->args[1] = text_of_code(l, e, l->code_file + 8);
		p->args[2] = of_code(l, e, l->code_first_line, -4);
	}
	return NULL;
}

/* An interpreter's file. The search decodes its code, which takes milliseconds. Each description of
 * a script asks for each process. */
struct usdt_python_file {
	uint64_t dev, inode;
	bool returns;
	struct usdt_python places;
	const char *reason; /* NULL: places are known */
	struct usdt_python_file *next;
};

const struct usdt_python *usdt_python_places(struct probe_set *ps, const struct process_object *po,
					     const struct object_usdt *u, const char **ret_reason)
{
	const bool returns = !strcmp(u->name, "function__return");
	struct usdt_python_file *known = ps->pythons;

	while (known &&
	       (known->dev != po->dev || known->inode != po->inode || known->returns != returns))
		known = known->next;
	if (!known) {
		known = arena_new(&ps->arena, struct usdt_python_file);
		known->dev = po->dev;
		known->inode = po->inode;
		known->returns = returns;
		known->reason = places_of_file(po->object, returns, &known->places);
		known->next = ps->pythons;
		ps->pythons = known;
	}
	*ret_reason = known->reason;
	return known->reason ? NULL : &known->places;
}
