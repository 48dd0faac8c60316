/* Where descry's library reaches the interpreter of a JVM that has no code for the probes of
 * methods (agent/jvm_interpreter.h): Java 25. */
#include <string.h>

#include "probe/usdt.h"
#include "program/runtime/jvm/jvm.h"
#include "wire/jvm_text.h"

static const struct {
	enum java_interpreter number;
	const char *symbol;
} symbols[] = {
	{ JAVA_ENTRIES, "_ZN19AbstractInterpreter12_entry_tableE" },
	{ JAVA_NORMAL_TABLE, "_ZN19TemplateInterpreter13_normal_tableE" },
	{ JAVA_ACTIVE_TABLE, "_ZN19TemplateInterpreter13_active_tableE" },
	{ JAVA_LEAVES_BY_EXCEPTION, "_ZN19TemplateInterpreter24_remove_activation_entryE" },
	{ JAVA_ENTERED, "_ZN13SharedRuntime19dtrace_method_entryEP10JavaThreadP6Method" },
	{ JAVA_LEFT, "_ZN13SharedRuntime18dtrace_method_exitEP10JavaThreadP6Method" },
};

/* The name of a bytecode that the JVM uses for the end of Object's constructor. */
static const char last_name[] = "return_register_finalizer";
enum { LAST_CODE = 232 };

/* Returns true when the JVM's bytecodes have the numbers that the library knows. */
static bool has_codes(struct jvm *v)
{
	uint64_t names, at;
	char name[sizeof(last_name)];

	return object_symbol_value(v->object, "_ZN9Bytecodes5_nameE", &names) &&
	       jvm_word(v, v->bias + names + LAST_CODE * sizeof(at), &at) &&
	       space_read_some(v->runtime.space, at, name, sizeof(name)) == sizeof(name) &&
	       !memcmp(name, last_name, sizeof(name));
}

const struct probe_java_interpreter *usdt_interpreter(struct arena *a, struct jvm *v)
{
	static const char native[] = "PreferInterpreterNativeStubs";
	const struct jvm_layout *l = &v->layout;
	struct probe_java_interpreter *found = arena_new(a, struct probe_java_interpreter);
	uint64_t *number = arena_array(a, uint64_t, JAVA_INTERPRETER_NUMBERS), addr;

	if (strncmp(v->runtime.version, "25.", 3) || l->method_entry.width != 8 ||
	    l->method_from.width != 8 || l->const_parameters.width != 2 || !has_codes(v) ||
	    !usdt_flag_find(v->object, native, &addr))
		return NULL;
	found->number = number;
	found->native_at = v->bias + addr;
	found->native_off = jvm_option_is_default(v, native);
	number[JAVA_METHOD_ENTRY] = l->method_entry.at;
	number[JAVA_METHOD_FROM] = l->method_from.at;
	number[JAVA_METHOD_CONST] = l->method_const.at;
	number[JAVA_CONST_PARAMETERS] = l->const_parameters.at;
	number[JAVA_CONST_CODE] = l->size.const_method;
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (!object_symbol_value(v->object, symbols[i].symbol, &addr))
			return NULL;
		number[symbols[i].number] = v->bias + addr;
	}
	return found;
}
