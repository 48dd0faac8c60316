/* args[] of java123:CLASS:METHOD:entry: args[0] is `this`, args[1] and so on are the method's
 * arguments in the types of its signature, a String as text. They are D texts that read the frame
 * of the method (bpf/java_value.bpf.h).
 *
 * The signature is looked up when the program is compiled, in the classes that are loaded. A type
 * on which the methods do not agree, or which no method has, is not known; the program then finds
 * out at each firing whether an argument is a number of 32 or 64 bits. It also checks the types
 * that are known: a class that is loaded later may have others.
 */
#include <inttypes.h>
#include <string.h>

#include "probe/process.h"
#include "probe/usdt.h"
#include "program/runtime/jvm/jvm.h"
#include "wire/java_value.h"
#include "wire/language.h"

enum { READS_MAX = 16 << 20 };

/* A JVM. */
struct usdt_java {
	pid_t pid;
	size_t budget;
	struct space *space;
	struct runtime *r; /* NULL: not a JVM that descry knows */
	bool args;         /* arguments can be read */
	struct wire_language wire;
	struct jvm_string string;
	uint32_t signature_at;
	struct usdt_java *next;
};

static struct jvm *jvm_of(const struct usdt_java *v)
{
	return (struct jvm *)v->r;
}

/* Returns true when the bits are in a Method's access flags and behind them. */
static bool has_access_bits(const struct usdt_java *v)
{
	const struct jvm_layout *l = &jvm_of(v)->layout;

	return (!strncmp(v->r->version, "11.", 3) || !strncmp(v->r->version, "17.", 3)) &&
	       l->method_intrinsic.at == l->method_access.at + 8;
}

/* Returns the place of a Method's status in Java 21 and 25: between two other members. 0: it is not
 * there. */
static uint32_t status_at(const struct usdt_java *v)
{
	const struct jvm_layout *l = &jvm_of(v)->layout;

	if (!strncmp(v->r->version, "25.", 3))
		return l->method_access.at == l->method_virtual.at + 4 &&
				       l->method_intrinsic.at == l->method_virtual.at + 12
			       ? l->method_virtual.at + 8
			       : 0;
	return !strncmp(v->r->version, "21.", 3) && l->method_virtual.width == 4 &&
			       l->method_intrinsic.width == 2 &&
			       l->method_intrinsic.at == l->method_virtual.at + 8
		       ? l->method_virtual.at + 4
		       : 0;
}

/* Of these versions it is known which bits keep a method from being compiled: agent/jvm_methods.c.
 */
static bool is_known(struct usdt_java *v)
{
	return (has_access_bits(v) || status_at(v)) && v->r->type->wire(v->r, &v->wire) &&
	       jvm_values_read(jvm_of(v), &v->string, &v->signature_at);
}

static void java_close(struct usdt_java *v)
{
	if (v->r)
		v->r->type->free(v->r);
	space_free(v->space);
	v->r = NULL;
	v->space = NULL;
}

static void java_open(struct usdt_java *v)
{
	v->budget = READS_MAX;
	err_free(space_live(v->pid, &v->space));
	if (v->space)
		err_free(runtime_find_met(v->space, &v->budget, &v->r));
}

static struct usdt_java *java_find(struct probe_set *ps, pid_t pid)
{
	struct usdt_java *v = ps->javas;

	while (v && v->pid != pid)
		v = v->next;
	if (v)
		return v;
	v = arena_new(&ps->arena, struct usdt_java);
	v->pid = pid;
	v->next = ps->javas;
	ps->javas = v;
	java_open(v);
	if (v->r && v->r->type != &runtime_jvm)
		java_close(v);
	v->args = v->r && is_known(v);
	return v;
}

void usdt_javas_free(struct usdt_java *v)
{
	for (; v; v = v->next)
		java_close(v);
}

uint32_t usdt_java_access(struct probe_set *ps, pid_t pid)
{
	const struct usdt_java *v = java_find(ps, pid);

	if (!v->args)
		return 0;
	return has_access_bits(v) ? jvm_of(v)->layout.method_access.at : status_at(v);
}

const struct probe_java_interpreter *usdt_java_interpreter(struct probe_set *ps, pid_t pid)
{
	const struct usdt_java *v = java_find(ps, pid);

	return v->r ? usdt_interpreter(&ps->arena, jvm_of(v)) : NULL;
}

bool usdt_java_flag_is_tracers(pid_t pid, const char *name)
{
	struct usdt_java v = { .pid = pid };
	bool is;

	java_open(&v);
	is = v.r && v.r->type == &runtime_jvm && jvm_option_is_default(jvm_of(&v), name);
	java_close(&v);
	return is;
}

static uint64_t packed(uint64_t byte, uint32_t place)
{
	return (byte & 0xff) << 8 * place;
}

/* Returns the D text of a parameter's value, 0: `this`. The JVM's function that has the probe
 * begins with a frame of its own. */
static const char *value_text(struct arena *a, const struct usdt_java *v, uint32_t n, char kind)
{
	const struct jvm_layout *l = &jvm_of(v)->layout;
	uint64_t members = packed(l->method_const.at, WIRE_JAVA_METHOD_CONST) |
			   packed(l->method_access.at, WIRE_JAVA_METHOD_ACCESS) |
			   packed(l->const_constants.at, WIRE_JAVA_CONST_CONSTANTS) |
			   packed(v->signature_at, WIRE_JAVA_CONST_SIGNATURE) |
			   packed(l->size.constants, WIRE_JAVA_CONSTANTS_SIZE) |
			   packed(l->symbol_text.at, WIRE_JAVA_SYMBOL_TEXT) |
			   packed(n, WIRE_JAVA_WANTED) | packed((uint8_t)kind, WIRE_JAVA_KIND);

	return arena_printf(a, "__java_arg(uregs[%d], %#" PRIx64 ", %" PRIu64 ", %#" PRIx64 ")",
			    UREG_RBP, v->wire.java.interpreter, v->wire.java.interpreter_size,
			    members);
}

static const char *string_text(struct arena *a, const struct usdt_java *v, const char *value)
{
	static const uint8_t references[] = { [JVM_WIDE] = WIRE_JAVA_WIDE,
					      [JVM_NARROW] = WIRE_JAVA_NARROW,
					      [JVM_COLOURED] = WIRE_JAVA_COLOURED,
					      [JVM_GENERATIONS] = WIRE_JAVA_GENERATIONS };
	const struct jvm_string *s = &v->string;
	uint64_t form = packed(s->value, WIRE_JAVA_STRING_VALUE) |
			packed(s->coder, WIRE_JAVA_STRING_CODER) |
			packed(s->length, WIRE_JAVA_ARRAY_LENGTH) |
			packed(s->data, WIRE_JAVA_ARRAY_DATA) | packed(s->shift, WIRE_JAVA_SHIFT) |
			packed(references[s->references], WIRE_JAVA_REFERENCES) |
			packed(s->part_entries, WIRE_JAVA_PART_ENTRIES) |
			packed(s->part_size, WIRE_JAVA_PART_SIZE);

	if (s->references == JVM_GENERATIONS) {
		/* the colour does not change while a thread is in a probe */
		uint64_t pages = (uint64_t)(s->old >> WIRE_JAVA_PAGE), low = pages & 0xfff;

		return arena_printf(a,
				    "__java_text(%s, %#" PRIx64 " | (*(uint64_t *)copyin(%#" PRIx64
				    ", 8) & 0xf000) << %d, %#" PRIx64 ")",
				    value, form, s->good,
				    8 * WIRE_JAVA_REFERENCES + 4 - WIRE_JAVA_COLOUR_AT,
				    s->base | low | pages >> WIRE_JAVA_PAGE << WIRE_JAVA_ADDRESS);
	}
	return arena_printf(a, "__java_text(%s, %#" PRIx64 ", %#" PRIx64 ")", value, form, s->base);
}

/* float and double are their bits, because D does not calculate with them. */
static type_id type_of_kind(char kind)
{
	switch (kind) {
	case 'Z': return T_UINT8;
	case 'B': return T_INT8;
	case 'C': return T_UINT16;
	case 'S': return T_INT16;
	case 'I': return T_INT32;
	case 'F': return T_UINT32;
	case 'D': return T_UINT64;
	case JVM_STRING: return T_STRING;
	default: return T_INT64;
	}
}

void usdt_java_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct usdt_java *v = java_find(ps, p->pid);
	char kinds[JVM_PARAMETERS_MAX];
	char *class = arena_strdup(&ps->arena, p->mod);

	ret->ntyped = 0;
	if (!v->args || !p->java_switch || !p->java_switch->access_at)
		return;
	for (char *c = class; *c; c++)
		if (*c == '.')
			*c = '/';
	jvm_parameters(jvm_of(v), class, p->func, kinds);
	_Static_assert(JVM_PARAMETERS_MAX < ARRAY_SIZE(ret->typed), "and `this`");
	for (uint32_t i = 0; i <= JVM_PARAMETERS_MAX; i++) {
		char kind = i ? kinds[i - 1] : 0;
		struct probe_arg *a = &ret->typed[ret->ntyped++];

		if (kind == JVM_DIFFERENT)
			kind = WIRE_JAVA_ANY;
		*a = (struct probe_arg){
			.source = ARG_EXPR,
			.type = type_of_kind(kind),
			.expr = value_text(&ps->arena, v, i, kind),
		};
		if (kind == JVM_STRING)
			a->expr = string_text(&ps->arena, v, a->expr);
	}
}

/* --- a JVM that was built without probes (Debian's Java 11) ---
 *
 * Interpreter and compilers call the functions that would pass the probes of methods, while the
 * flag is true, in such a JVM, too. The probes are behind the instruction that makes the function's
 * frame: the method is in rsi there.
 */

static const struct {
	const char *note, *java, *symbol;
} functions[] = {
	{ "method__entry", "entry",
	  "_ZN13SharedRuntime19dtrace_method_entryEP10JavaThreadP6Method" },
	{ "method__return", "return",
	  "_ZN13SharedRuntime18dtrace_method_exitEP10JavaThreadP6Method" },
};
_Static_assert(ARRAY_SIZE(functions) == USDT_JAVA_UNNOTED, "entry and return");

/* Returns the place behind push %rbp, [mov %rsi, %rdi,] mov %rsp, %rbp. 0: other code. */
static uint64_t place_in(struct object *o, uint64_t addr)
{
	static const uint8_t push[] = { 0x55 }, copy[] = { 0x48, 0x89, 0xf7 },
			     frame[] = { 0x48, 0x89, 0xe5 };
	uint8_t code[sizeof(push) + sizeof(copy) + sizeof(frame)];
	uint32_t at = sizeof(push);

	if (object_read(o, addr, code, sizeof(code)) != sizeof(code) ||
	    memcmp(code, push, sizeof(push)))
		return 0;
	if (!memcmp(code + at, copy, sizeof(copy)))
		at += sizeof(copy);
	return memcmp(code + at, frame, sizeof(frame)) ? 0 : addr + at + sizeof(frame);
}

/* Returns the D text of a Symbol's address: the name of the method or of its class. */
static const char *symbol_text(struct arena *a, const struct usdt_java *v, bool of_class)
{
	const struct jvm_layout *l = &jvm_of(v)->layout;
	const char *constant = arena_printf(a, "(*(uint64_t *)copyin(uregs[%d] + %u, 8))", UREG_RSI,
					    l->method_const.at);
	const char *constants = arena_printf(a, "(*(uint64_t *)copyin(%s + %u, 8))", constant,
					     l->const_constants.at);

	if (of_class)
		return arena_printf(
			a, "(*(uint64_t *)copyin((*(uint64_t *)copyin(%s + %u, 8)) + %u, 8))",
			constants, l->constants_class.at, l->class_name.at);
	return arena_printf(a,
			    "(*(uint64_t *)copyin(%s + %" PRIu64
			    " + 8 * (*(uint16_t *)copyin(%s + %u, 2)), 8))",
			    constants, l->size.constants, constant, l->const_name.at);
}

static void name_texts(struct arena *a, const struct usdt_java *v, bool of_class,
		       const char **ret_text, const char **ret_at, const char **ret_length)
{
	const struct jvm_layout *l = &jvm_of(v)->layout;
	const char *symbol = symbol_text(a, v, of_class);

	*ret_at = arena_printf(a, "(%s + %u)", symbol, l->symbol_text.at);
	*ret_length =
		arena_printf(a, "(*(uint16_t *)copyin(%s + %u, 2))", symbol, l->symbol_length.at);
	*ret_text = arena_printf(a, "copyinstr(%s, %s)", *ret_at, *ret_length);
}

static bool has_notes(struct object *o)
{
	uint32_t n;
	const struct object_usdt *u = object_usdts(o, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(u[i].provider, "hotspot"))
			return true;
	return false;
}

uint32_t usdt_java_unnoted(struct probe_set *ps, const struct process_object *po,
			   struct object_usdt ret[USDT_JAVA_UNNOTED],
			   struct usdt_names ret_names[USDT_JAVA_UNNOTED])
{
	const struct usdt_java *v;
	uint64_t addr;

	if (!object_symbol_value(po->object, "JNI_CreateJavaVM", &addr) || has_notes(po->object))
		return 0;
	v = java_find(ps, po->pid);
	for (uint32_t i = 0; v->r && i < USDT_JAVA_UNNOTED; i++) {
		struct usdt_names *names = &ret_names[i];

		if (!object_symbol_value(po->object, functions[i].symbol, &addr) ||
		    !(addr = place_in(po->object, addr)))
			return 0;
		ret[i] = (struct object_usdt){
			.provider = "hotspot", .name = functions[i].note, .args = "", .func = ""
		};
		ret[i].addr = addr;
		if (!object_addr_to_offset(po->object, addr, &ret[i].offset))
			return 0;
		*names = (struct usdt_names){ .java = functions[i].java, .slashes = true };
		name_texts(&ps->arena, v, true, &names->mod, &names->mod_at, &names->mod_length);
		name_texts(&ps->arena, v, false, &names->func, &names->func_at,
			   &names->func_length);
	}
	return v->r ? USDT_JAVA_UNNOTED : 0;
}
