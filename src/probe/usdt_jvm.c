/* The probes of HotSpot that the JVM passes only while one of its flags is true: their flags.
 *
 * The interpreter and the JVM's own code look at a flag each time. The compilers look at it when
 * they compile a function. So a JVM in which no code has been compiled yet passes all of these
 * probes after its flag was set. In a JVM that runs, only the probes of monitors do not depend on
 * compiled code.
 */
#include <elf.h>
#include <string.h>

#include "base/procmem.h"
#include "probe/process.h"
#include "probe/usdt.h"
#include "program/space/mapping.h"

static const struct {
	const char *name, *flag;
	bool compiled; /* compiled code has or lacks the probe */
} guarded[] = {
	{ "method__entry", "DTraceMethodProbes", true },
	{ "method__return", "DTraceMethodProbes", true },
	{ "object__alloc", "DTraceAllocProbes", true },
	{ "monitor__contended__enter", "DTraceMonitorProbes", false },
	{ "monitor__contended__entered", "DTraceMonitorProbes", false },
	{ "monitor__contended__exit", "DTraceMonitorProbes", false },
	{ "monitor__notify", "DTraceMonitorProbes", false },
	{ "monitor__notifyAll", "DTraceMonitorProbes", false },
	{ "monitor__wait", "DTraceMonitorProbes", false },
	{ "monitor__waited", "DTraceMonitorProbes", false },
};

bool usdt_flag_find(struct object *o, const char *name, uint64_t *ret)
{
	struct object_segment s;
	uint64_t addr;

	if (!object_symbol_value(o, name, &addr))
		return false;
	for (uint32_t i = 0; object_segment(o, i, &s); i++)
		if (s.type == PT_LOAD && s.flags & PF_W && addr - s.addr < s.memsz) {
			*ret = addr;
			return true;
		}
	return false;
}

uint8_t usdt_flag_now(const struct process_object *po, uint64_t addr)
{
	struct mappings maps = { 0 };
	uint8_t value = 0;
	bool read = false;

	err_free(mappings_read(po->pid, &maps));
	for (uint32_t i = 0; i < maps.n && !read; i++) {
		const struct mapping *m = &maps.v[i];
		uint64_t at;

		read = m->exec && m->inode == po->inode &&
		       object_text_mapping_addr(po->object, m->offset, &at) &&
		       procmem_read(po->pid, &value, 1, addr + m->start - at) == 1;
	}
	mappings_free(&maps);
	return read ? value : 0;
}

struct usdt_jvm_flag usdt_jvm_flag(const struct process_object *po, const struct object_usdt *u,
				   bool loaded)
{
	struct usdt_jvm_flag f = { 0 };
	size_t i = 0;

	if (strcmp(u->provider, "hotspot"))
		return f;
	while (i < ARRAY_SIZE(guarded) && strcmp(guarded[i].name, u->name))
		i++;
	/* other programs may call their probes so */
	if (i == ARRAY_SIZE(guarded) ||
	    !object_symbol_value(po->object, "JNI_CreateJavaVM", &f.addr))
		return (struct usdt_jvm_flag){ 0 };
	f.name = guarded[i].flag;
	if (!usdt_flag_find(po->object, f.name, &f.addr)) {
		f.refused = "its file does not say where the flag is";
	} else if (loaded && usdt_flag_now(po, f.addr)) {
		f = (struct usdt_jvm_flag){ 0 };
	} else if (loaded && guarded[i].compiled) {
		f.refused = "functions that it has compiled already would stay without the probe; "
			    "descry sets the flag in a JVM that it starts (-c)";
	}
	if (f.refused)
		f.addr = 0;
	return f;
}
