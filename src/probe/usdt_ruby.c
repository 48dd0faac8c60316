/* method-entry and method-return of Ruby, whose own notes are passed only while a TracePoint is
 * enabled, if a build has them: places where frames are pushed and popped instead, and arguments
 * from the frame. Names that Ruby's probes had in other systems. */
#include <string.h>

#include "probe/process.h"
#include "probe/usdt.h"
#include "program/runtime/ruby/ruby.h"
#include "wire/language.h"

enum usdt_ruby_kind usdt_ruby_kind(const struct object_usdt *u)
{
	if (strcmp(u->provider, "ruby") != 0)
		return USDT_RUBY_OTHER;
	if (!strcmp(u->name, "method__entry"))
		return USDT_RUBY_ENTRY;
	if (!strcmp(u->name, "method__return"))
		return USDT_RUBY_RETURN;
	if (u->addr)
		return USDT_RUBY_OTHER;
	return !strcmp(u->name, "gc__mark__begin") ? USDT_RUBY_MARK_BEGIN
	       : !strcmp(u->name, "gc__mark__end") ? USDT_RUBY_MARK_END
	       : !strcmp(u->name, "raise")         ? USDT_RUBY_RAISE
						   : USDT_RUBY_OTHER;
}

const struct object_usdt *usdt_ruby_unnoted(struct object *o, uint32_t *ret_n)
{
	static const struct object_usdt unnoted[] = {
		{ .provider = "ruby", .name = "method__entry", .args = "", .func = "" },
		{ .provider = "ruby", .name = "method__return", .args = "", .func = "" },
		{ .provider = "ruby", .name = "gc__mark__begin", .args = "", .func = "" },
		{ .provider = "ruby", .name = "gc__mark__end", .args = "", .func = "" },
		{ .provider = "ruby", .name = "raise", .args = "", .func = "" },
	};
	uint32_t n;
	uint64_t addr;
	const struct object_usdt *u = object_usdts(o, &n);

	*ret_n = 0;
	if (!object_symbol_value(o, "ruby_api_version", &addr))
		return unnoted;
	for (uint32_t i = 0; i < n; i++)
		if (usdt_ruby_kind(&u[i]) != USDT_RUBY_OTHER)
			return unnoted;
	*ret_n = ARRAY_SIZE(unnoted);
	return unnoted;
}

const char *usdt_ruby_refusal(const struct object_usdt *u)
{
	bool is_c = !strcmp(u->name, "cmethod__entry") || !strcmp(u->name, "cmethod__return");

	return is_c && !strcmp(u->provider, "ruby")
		       ? "Ruby reads the class and the name of a method for this probe, and now and then crashes in this"
		       : NULL;
}

const char *usdt_ruby_old_name(const struct object_usdt *u)
{
	static const char *const names[][2] = {
		{ "method__entry", "function-entry" },
		{ "method__return", "function-return" },
		{ "gc__mark__begin", "gc-begin" },
		{ "gc__mark__end", "gc-end" },
		{ "object__create", "object-create-start" },
	};

	for (size_t i = 0; !strcmp(u->provider, "ruby") && i < ARRAY_SIZE(names); i++)
		if (!strcmp(u->name, names[i][0]))
			return names[i][1];
	return NULL;
}

static struct usdt_operand of_method(const struct ruby_places *found, const struct ruby_place *p,
				     uint8_t what)
{
	struct usdt_operand u = { .size = what == WIRE_RUBY_IS_LINE ? -4 : 8, .mode = USDT_RUBY };

	u.disp = p->moved;
	u.base = usdt_x86_reg(p->frame);
	u.index = p->entry == RUBY_NO_REGISTER ? -1 : usdt_x86_reg(p->entry);
	if (p->leaf) {
		u.path.n = 2;
		u.path.steps[0] = RUBY_CALL_CACHE;
		u.path.steps[1] = RUBY_CACHE_ENTRY;
	}
	u.ruby.what = what;
	u.ruby.form = found->is_3_3 ? WIRE_RUBY_3_3 : 0;
	u.ruby.symbols = found->symbols;
	u.ruby.unknown = found->unknown;
	return u;
}

/* Returns the operand for the flags of the frame, which its scope has. */
static struct usdt_operand flags_of_frame(const struct ruby_place *p)
{
	struct usdt_operand u = { .size = 8, .mode = USDT_REG, .index = -1 };

	u.base = usdt_x86_reg(p->frame);
	u.path.n = 2;
	u.path.steps[0] = (int16_t)(p->moved + WIRE_RUBY_FRAME_SCOPE);
	u.path.steps[1] = 0;
	return u;
}

const char *usdt_ruby_compiled(const struct process_object *po)
{
	struct mappings maps = { 0 };
	bool compiled;

	err_free(mappings_read(po->pid, &maps));
	compiled = ruby_compiled_in(&maps);
	mappings_free(&maps);
	return compiled
		       ? "its own compiler (YJIT) has made code, and calls of methods there pass no "
			 "place that descry knows"
		       : NULL;
}

bool usdt_ruby_line(const struct process_object *po, bool loaded, struct usdt_ruby_line *ret)
{
	struct ruby_line_event found;

	if (!object_symbol_value(po->object, "ruby_api_version", &found.function))
		return false;
	*ret = (struct usdt_ruby_line){ .refused = ruby_line_event(po->object, &found) };
	if (ret->refused)
		return true;
	if (!usdt_is_data(po->object, found.events)) {
		ret->refused = "its file does not say where its flag is";
		return true;
	}
	ret->flag = found.events;
	if (loaded && usdt_flag_now(po, ret->flag) & RUBY_EVENT_LINE)
		ret->flag = 0;
	else if (loaded)
		ret->refused = "code that Ruby has made already would stay without it; "
			       "descry sets the flag in a Ruby that it starts (-c)";
	ret->addr = found.function;
	for (uint32_t i = 0; i < USDT_RUBY_LINE_ARGS; i++) {
		struct usdt_operand *u = &ret->args[i];

		*u = (struct usdt_operand){
			.size = 8, .mode = USDT_RUBY, .base = UREG_RSI, .index = -1
		};
		u->ruby.what = i ? WIRE_RUBY_IS_HERE : WIRE_RUBY_IS_FILE;
		u->ruby.form = found.is_3_3 ? WIRE_RUBY_3_3 : 0;
	}
	ret->args[1].size = -4;
	return true;
}

const char *usdt_ruby_raise(struct object *o, struct usdt_ruby_place *ret)
{
	static const uint8_t what[USDT_RUBY_RAISE_ARGS] = { WIRE_RUBY_IS_RAISED,
							    WIRE_RUBY_IS_SOURCE,
							    WIRE_RUBY_IS_SOURCE_LINE };
	struct ruby_place p;
	uint64_t unknown;
	const char *reason = ruby_raise_event(o, &p, &unknown);

	if (reason)
		return reason;
	*ret = (struct usdt_ruby_place){ .addr = p.addr };
	for (uint32_t i = 0; i < USDT_RUBY_RAISE_ARGS; i++) {
		struct usdt_operand *u = &ret->args[i];

		*u = (struct usdt_operand){ .size = 8, .mode = USDT_RUBY, .index = -1 };
		u->base = usdt_x86_reg(p.frame);
		u->ruby.what = what[i];
		u->ruby.form = WIRE_RUBY_3_3;
		u->ruby.unknown = unknown;
	}
	ret->args[USDT_RUBY_RAISE_ARGS - 1].size = -4;
	return NULL;
}

const char *usdt_ruby_mark(struct object *o, enum usdt_ruby_kind kind, uint64_t *ret_addr)
{
	struct ruby_gc_events found;
	const char *reason = ruby_gc_events(o, &found);

	if (!reason)
		*ret_addr = kind == USDT_RUBY_MARK_BEGIN ? found.begin : found.end;
	return reason;
}

/* An interpreter's file: see usdt_python_file. */
struct usdt_ruby_file {
	uint64_t dev, inode;
	struct usdt_ruby places;
	const char *reason; /* NULL: places are known */
	struct usdt_ruby_file *next;
};

static void find_places(struct probe_set *ps, struct object *o, struct usdt_ruby_file *f)
{
	static const uint8_t args[USDT_RUBY_ARGS] = { WIRE_RUBY_IS_CLASS, WIRE_RUBY_IS_METHOD,
						      WIRE_RUBY_IS_FILE, WIRE_RUBY_IS_LINE };
	struct ruby_places found;

	f->reason = ruby_places(o, &found);
	if (f->reason)
		return;
	f->places.v = arena_array(&ps->arena, struct usdt_ruby_place, found.n);
	f->places.n = found.n;
	f->places.nentries = found.nentries;
	for (uint32_t i = 0; i < found.n; i++) {
		struct usdt_ruby_place *p = &f->places.v[i];

		p->addr = found.v[i].addr;
		for (uint32_t k = 0; k < USDT_RUBY_ARGS; k++)
			p->args[k] = of_method(&found, &found.v[i], args[k]);
		if (i >= found.nentries && !found.v[i].leaf)
			p->flags = flags_of_frame(&found.v[i]);
	}
}

const struct usdt_ruby *usdt_ruby_places(struct probe_set *ps, const struct process_object *po,
					 const char **ret_reason)
{
	struct usdt_ruby_file *known = ps->rubies;

	while (known && (known->dev != po->dev || known->inode != po->inode))
		known = known->next;
	if (!known) {
		known = arena_new(&ps->arena, struct usdt_ruby_file);
		known->dev = po->dev;
		known->inode = po->inode;
		find_places(ps, po->object, known);
		known->next = ps->rubies;
		ps->rubies = known;
	}
	*ret_reason = known->reason;
	return known->reason ? NULL : &known->places;
}
