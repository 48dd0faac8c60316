/* Recognises V8 by the numbers that it publishes for debuggers. */
#include <stddef.h>
#include <string.h>

#include "program/runtime/v8/v8.h"

enum { BUDGET = 64 << 20, WORK = 1 << 30, WORD = 8, SMALL_SHIFT = 31, BLOB_MAX = 1 << 26 };

static const struct {
	const char *symbol[3];
	uint32_t to;
	bool required;
} numbers[] = {
#define X(name, required, symbol, second, third) \
	{ { symbol, second, third }, offsetof(struct v8_numbers, name), required },
	V8_NUMBERS(X)
#undef X
};

static bool is_library(const char *name)
{
	return !strncmp(name, "libnode.so", 10) || !strcmp(name, "node") || !strcmp(name, "nodejs");
}

static bool published(struct v8 *v, const char *symbol, int32_t *ret)
{
	char full[128];
	uint64_t addr;

	snprintf(full, sizeof(full), "v8dbg_%s", symbol);
	if (!*symbol || !object_symbol_value(v->object, full, &addr) ||
	    space_read_some(v->runtime.space, addr + v->bias, ret, sizeof(*ret)) != sizeof(*ret))
		return false;
	return true;
}

static struct err *read_numbers(struct v8 *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int32_t *to = (int32_t *)(void *)((char *)&v->n + numbers[i].to);

		if (!published(v, numbers[i].symbol[0], to) &&
		    !published(v, numbers[i].symbol[1], to) &&
		    !published(v, numbers[i].symbol[2], to) && numbers[i].required)
			return err_new(0, "%s: it does not publish v8dbg_%s",
				       object_path(v->object), numbers[i].symbol[0]);
	}
	if (v->n.tagged_size != WORD || v->n.smi_shift != SMALL_SHIFT)
		return err_new(0, "%s: descry does not know V8 with compressed pointers",
			       object_path(v->object));
	return NULL;
}

/* Reads a variable of V8's class Version. */
static int32_t version_part(const struct v8 *v, const char *symbol)
{
	uint64_t addr;

	return object_symbol_value(v->object, symbol, &addr) ? (int32_t)v8_u32(v, addr + v->bias)
							     : -1;
}

static struct err *find_version(struct v8 *v)
{
	int32_t major = version_part(v, "_ZN2v88internal7Version6major_E");
	int32_t minor = version_part(v, "_ZN2v88internal7Version6minor_E");

	if (major < 0 || minor < 0)
		return err_new(0, "%s: it does not have the version of V8", object_path(v->object));
	snprintf(v->runtime.version, sizeof(v->runtime.version), "V8 %d.%d", major, minor);
	v->version = v8_version_find(major, minor);
	if (v->version)
		snprintf(v->runtime.version, sizeof(v->runtime.version), "V8 %d.%d of Node.js %s",
			 major, minor, v->version->node);
	if (!v->version)
		return err_new(0, "%s: the structures of V8 %d.%d are not known to descry",
			       object_path(v->object), major, minor);
	return NULL;
}

/* Reads the variable that a function returns: mov variable(%rip), %rax; ret. */
static bool returned(const struct v8 *v, const char *function, uint32_t width, uint64_t *ret)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 };
	const uint8_t *want = load + (width == 4);
	uint32_t n = (uint32_t)sizeof(load) - (width == 4);
	uint8_t code[8];
	uint64_t addr;
	int32_t disp;

	*ret = 0;
	if (!object_symbol_value(v->object, function, &addr) ||
	    object_read(v->object, addr, code, n + 5) != n + 5 || memcmp(code, want, n) != 0 ||
	    code[n + 4] != 0xc3)
		return false;
	memcpy(&disp, code + n, 4);
	addr += n + 4 + (uint64_t)(int64_t)disp + v->bias;
	return space_read_some(v->runtime.space, addr, ret, width) == width;
}

struct err *v8_builtins_find(struct v8 *v)
{
	if (!returned(v, "_ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv", 8, &v->blob) ||
	    !returned(v, "_ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv", 4,
		      &v->blob_size) ||
	    v->blob_size > BLOB_MAX)
		return err_new(0, "%s: its built-in functions cannot be found",
			       object_path(v->object));
	return NULL;
}

static void v8_ended(struct runtime *r)
{
	struct v8 *v = (struct v8 *)r;

	object_free(v->object);
	v->object = NULL;
}

static void v8_free(struct runtime *r)
{
	struct v8 *v = (struct v8 *)r;

	object_free(v->object);
	arena_fini(&v->names);
	arena_fini(&v->passing);
	hash_fini(&v->types);
	hash_fini(&v->functions);
	hash_fini(&v->scripts);
	hash_fini(&v->doubtful);
	hash_fini(&v->arrays);
	hash_fini(&v->lines);
	vec_fini(&v->ranges);
	vec_fini(&v->codes);
	free(v);
}

static struct err *v8_open(struct space *s, struct object *o, uint64_t bias, struct runtime **ret)
{
	struct err *e;
	struct v8 *v;
	uint64_t addr;

	*ret = NULL;
	if (!object_symbol_value(o, "v8dbg_SmiShiftSize", &addr))
		return NULL;
	v = xcalloc(1, sizeof(*v));
	v->runtime.type = &runtime_v8;
	v->runtime.space = s;
	v->object = o;
	v->bias = bias;
	v->budget = BUDGET;
	v->work = WORK;
	arena_init(&v->names);
	arena_init(&v->passing);
	e = find_version(v);
	e = e ?: read_numbers(v);
	e = e ?: v8_builtins_find(v);
	if (!e) {
		if (object_symbol_value(
			    o, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", &addr))
			v->sizes = addr + bias;
		*ret = &v->runtime;
		return NULL;
	}
	v->object = NULL; /* the caller's */
	v8_free(&v->runtime);
	return e;
}

static bool is_code(const struct runtime *r, uint64_t addr)
{
	bool made;

	return v8_is_code((struct v8 *)(uintptr_t)r, addr, &made);
}

static const char *const usual[] = { "/usr/bin/node", "/usr/bin/nodejs", "/usr/local/bin/node",
				     NULL };

const struct runtime_type runtime_v8 = {
	.name = "javascript",
	.program = "node",
	.usual = usual,
	.is_library = is_library,
	.open = v8_open,
	.step = v8_step,
	.is_loop = is_code,
	.is_part = is_code,
	.wire = v8_wire,
	.moves = true,
	.learn = v8_learn,
	.describe = v8_describe,
	.ended = v8_ended,
	.free = v8_free,
};
