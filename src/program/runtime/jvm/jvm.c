/* Recognises HotSpot: by the tables that libjvm.so exports. */
#include "program/runtime/jvm/jvm.h"

#include <string.h>

enum { BUDGET = 64 << 20 };

/* Versions whose code cache and frames are known: those with long support. */
static const struct {
	uint32_t major, excluded;
} versions[] = { { 11, 0 }, { 17, 0 }, { 21, 1 }, { 25, 1 } };

static bool is_library(const char *name)
{
	return !strcmp(name, "libjvm.so");
}

static uint32_t variable(const struct jvm *j, uint64_t addr)
{
	return (uint32_t)jvm_get(j, addr, (struct jvm_member){ 0, 4 });
}

static bool find_version(struct jvm *j)
{
	const struct jvm_layout *l = &j->layout;
	uint32_t major = variable(j, l->variable.major);

	snprintf(j->runtime.version, sizeof(j->runtime.version), "%u.%u.%u", major,
		 variable(j, l->variable.minor), variable(j, l->variable.security));
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major) {
			j->layout.excluded = versions[i].excluded;
			return true;
		}
	return false;
}

static void jvm_ended(struct runtime *r)
{
	struct jvm *j = (struct jvm *)r;

	object_free(j->object);
	j->object = NULL;
}

static void jvm_free(struct runtime *r)
{
	struct jvm *j = (struct jvm *)r;

	object_free(j->object);
	arena_fini(&j->names);
	hash_fini(&j->methods);
	hash_fini(&j->lines);
	hash_fini(&j->texts);
	hash_fini(&j->threads);
	free(j);
}

static struct err *jvm_open(struct space *s, struct object *o, uint64_t bias, struct runtime **ret)
{
	struct err *e = NULL;
	struct jvm *j;
	uint64_t addr;

	*ret = NULL;
	if (!object_symbol_value(o, "gHotSpotVMStructs", &addr))
		return NULL;
	j = xcalloc(1, sizeof(*j));
	j->runtime.type = &runtime_jvm;
	j->runtime.space = s;
	j->object = o;
	j->bias = bias;
	j->budget = BUDGET;
	j->work = JVM_WORK;
	arena_init(&j->names);
	if (!jvm_layout_read(j, &j->layout))
		e = err_new(0, "%s: its tables of structures are not as they should be",
			    object_path(o));
	else if (!find_version(j))
		e = err_new(0, "%s: the structures of Java %s are not known to descry",
			    object_path(o), j->runtime.version);
	if (!e) {
		j->dense = jvm_option(j, "DebugNonSafepoints");
		*ret = &j->runtime;
		return NULL;
	}
	j->object = NULL; /* the caller's */
	jvm_free(&j->runtime);
	return e;
}

static bool is_loop(const struct runtime *r, uint64_t addr)
{
	return jvm_is_code((struct jvm *)(uintptr_t)r, addr);
}

static const char *const usual[] = { "/usr/lib/jvm", "/usr/java", "/opt/java", NULL };

const struct runtime_type runtime_jvm = {
	.name = "java",
	.program = "java",
	.usual = usual,
	.is_library = is_library,
	.open = jvm_open,
	.step = jvm_step,
	.is_loop = is_loop,
	.wire = jvm_wire,
	.learn = jvm_learn,
	.describe = jvm_describe,
	.ended = jvm_ended,
	.free = jvm_free,
};
