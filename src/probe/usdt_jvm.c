/* The probes of HotSpot that the JVM passes only while one of its flags is true: their flags.
 *
 * The interpreter and the JVM's own code look at a flag each time. The compilers look at it when
 * they compile a function. So a JVM in which no code has been compiled yet passes all of these
 * probes after its flag was set. In a JVM that runs, only the probes of monitors do not depend on
 * compiled code; for the others, the JVM must give the code up that it has (struct
 * probe_java_switch).
 */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/procmem.h"
#include "probe/process.h"
#include "probe/usdt.h"
#include "program/space/mapping.h"
#include "wire/jvm_text.h"

/* From this version on, the interpreter's code has these probes only when the flag was true when
 * the JVM began (JDK-8335946). usdt_java_interpreter() knows other means for those of methods. */
enum { JAVA_FIXED = 24 };

static const struct {
	const char *name, *flag, *what;
	bool compiled; /* compiled code has or lacks the probe */
} guarded[] = {
	{ "method__entry", "DTraceMethodProbes", "methods", true },
	{ "method__return", "DTraceMethodProbes", "methods", true },
	{ "object__alloc", "DTraceAllocProbes", "objects", true },
#define MONITOR(name) \
	{ \
		"monitor__" name, "DTraceMonitorProbes", "monitors", false \
	}
	MONITOR("contended__enter"),
	MONITOR("contended__entered"),
	MONITOR("contended__exit"),
	MONITOR("notify"),
	MONITOR("notifyAll"),
	MONITOR("wait"),
	MONITOR("waited"),
};

bool usdt_is_data(struct object *o, uint64_t addr)
{
	struct object_segment s;

	for (uint32_t i = 0; object_segment(o, i, &s); i++)
		if (s.type == PT_LOAD && s.flags & PF_W && addr - s.addr < s.memsz)
			return true;
	return false;
}

bool usdt_flag_find(struct object *o, const char *name, uint64_t *ret)
{
	uint64_t addr;

	if (!object_symbol_value(o, name, &addr) || !usdt_is_data(o, addr))
		return false;
	*ret = addr;
	return true;
}

/* Returns the address of the object's data in the process, 0: it is not mapped. */
static uint64_t data_at(const struct process_object *po, uint64_t addr)
{
	struct mappings maps = { 0 };
	uint64_t at = 0, found;

	err_free(mappings_read(po->pid, &maps));
	for (uint32_t i = 0; i < maps.n && !at; i++) {
		const struct mapping *m = &maps.v[i];

		if (m->exec && m->inode == po->inode &&
		    object_text_mapping_addr(po->object, m->offset, &found))
			at = addr + m->start - found;
	}
	mappings_free(&maps);
	return at;
}

uint8_t usdt_flag_now(const struct process_object *po, uint64_t addr)
{
	uint64_t at = data_at(po, addr);
	uint8_t value;

	return at && procmem_read(po->pid, &value, 1, at) == 1 ? value : 0;
}

/* Returns the number of the JVM's version, 0: it is not known. */
static uint8_t jvm_version(const struct process_object *po)
{
	uint64_t addr;

	return usdt_flag_find(po->object, "_ZN19Abstract_VM_Version17_vm_major_versionE", &addr)
		       ? usdt_flag_now(po, addr)
		       : 0;
}

/* Finds out how the flag of a running JVM is set. */
static void find_switch(struct probe_set *ps, const struct process_object *po,
			struct usdt_jvm_flag *f, const char *what, bool compiled)
{
	const uint8_t version = compiled ? jvm_version(po) : 1;
	uint64_t addr;

	if (version >= JAVA_FIXED && !strcmp(what, "methods"))
		f->on.interpreter = usdt_java_interpreter(ps, po->pid);
	if (!version || (version >= JAVA_FIXED && !f->on.interpreter)) {
		f->refused = version ? "from Java 24 on, the interpreter of a JVM that was started "
				       "without it lacks the probe"
				     : "its file does not say which version it is";
		return;
	}
	if (usdt_flag_find(po->object, "DisableAttachMechanism", &addr) &&
	    usdt_flag_now(po, addr)) {
		f->refused = "it was started with -XX:+DisableAttachMechanism, and descry reaches "
			     "it by no other way";
		return;
	}
	f->on.flag_at = data_at(po, f->addr);
	if (usdt_flag_find(po->object, "WhiteBoxAPI", &addr))
		f->on.white_box_at = data_at(po, addr);
	if (f->on.flag_at && f->on.white_box_at) {
		f->on.what = what;
		if (!strcmp(what, "methods"))
			f->on.access_at = usdt_java_access(ps, po->pid);
	}
	if (!f->on.what)
		f->refused = "its file does not say where its flags are";
}

struct usdt_jvm_flag usdt_jvm_flag(struct probe_set *ps, const struct process_object *po,
				   const struct object_usdt *u, bool loaded)
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
		f.addr = 0;
	} else if (loaded && usdt_flag_now(po, f.addr) &&
		   !(f.on.was_off = usdt_java_flag_is_tracers(po->pid, f.name))) {
		f = (struct usdt_jvm_flag){ 0 };
	} else if (loaded) {
		find_switch(ps, po, &f, guarded[i].what, guarded[i].compiled);
		if (guarded[i].compiled)
			f.addr = 0;
		else
			f.refused = NULL; /* the in-process engine sets it */
	}
	return f;
}
