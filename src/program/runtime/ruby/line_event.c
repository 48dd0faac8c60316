/* Finds the function by which Ruby 3.1 looks at the events of an instruction.
 *
 * Instructions at which a line begins have a second form that calls it: vm_trace(). Ruby makes an
 * iseq with these forms when the event is in ruby_vm_event_enabled_global_flags. The function
 * returns at once when no TracePoint is enabled, which it learns from two variables. They are
 * exported; the function is not, so it is found by the code that reads both. */
#include <elf.h>
#include <string.h>

#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MAX = 64 << 20,
	NEAR = 64,    /* bytes between the reads of both variables */
	LEAD = 96,    /* bytes from the function's start to the first of them */
	LOADS = 0x8b, /* mov reg, [rip + distance]: opcode; the byte behind it, but for the register */
	RIP_FORM = 0x05,
	FORM_MASK = 0xc7,
	LOAD_SIZE = 6, /* from the opcode on */
};

struct variable {
	const char *name;
	uint64_t addr, slot; /* of the variable, and of the word that has its address; 0: none */
};

/* Finds the words that the dynamic linker fills with the variables' addresses. */
static void find_slots(struct object *o, struct variable *v, uint32_t n)
{
	uint64_t at;
	size_t nrela, nsym, nstr;
	cleanup_free uint8_t *rela = object_section(o, ".rela.dyn", &at, &nrela);
	cleanup_free uint8_t *sym = object_section(o, ".dynsym", &at, &nsym);
	cleanup_free uint8_t *str = object_section(o, ".dynstr", &at, &nstr);

	if (!rela || !sym || !str || !nstr || str[nstr - 1])
		return;
	for (size_t i = 0; i + sizeof(Elf64_Rela) <= nrela; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		Elf64_Sym s;

		memcpy(&r, rela + i, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT ||
		    ELF64_R_SYM(r.r_info) >= nsym / sizeof(s))
			continue;
		memcpy(&s, sym + ELF64_R_SYM(r.r_info) * sizeof(s), sizeof(s));
		for (uint32_t k = 0; k < n; k++)
			if (s.st_name < nstr && !strcmp((char *)str + s.st_name, v[k].name))
				v[k].slot = r.r_offset;
	}
}

/* Returns true when the instruction's bytes load from the variable, or its address from the
 * slot. */
static bool loads(const uint8_t *code, uint64_t addr, const struct variable *v)
{
	int32_t distance;
	uint64_t from;

	if (code[0] != LOADS || (code[1] & FORM_MASK) != RIP_FORM)
		return false;
	memcpy(&distance, code + 2, sizeof(distance));
	from = addr + LOAD_SIZE + (uint64_t)(int64_t)distance;
	return from == v->addr || (v->slot && from == v->slot);
}

/* Returns the start of the function, 0: there is none, or more than one. */
static uint64_t find_function(struct ruby *r, const uint8_t *text, uint32_t n,
			      const struct variable v[2])
{
	uint64_t found = 0;
	struct ruby_range f;

	for (uint32_t i = 0; i + NEAR + LOAD_SIZE <= n; i++) {
		uint64_t addr = r->text.start + i;
		bool both = false;

		if (!loads(text + i, addr, &v[0]))
			continue;
		for (uint32_t k = 1; k < NEAR; k++)
			both |= loads(text + i + k, addr + k, &v[1]);
		if (!both || !ruby_function(r, addr, &f) || addr - f.start > LEAD ||
		    f.start == found)
			continue;
		if (found)
			return 0;
		found = f.start;
	}
	return found;
}

const char *ruby_line_event(struct object *o, struct ruby_line_event *ret)
{
	struct variable v[] = { { "ruby_vm_event_flags", 0, 0 },
				{ "ruby_vm_event_local_num", 0, 0 } };
	uint64_t off, n, addr, version;
	struct ruby r = { .object = o };
	uint8_t *text;
	int32_t number[2];

	if (!object_symbol_value(o, "ruby_api_version", &version) ||
	    object_read(o, version, number, sizeof(number)) != sizeof(number))
		return "descry does not find its version";
	if (number[0] != 3 || number[1] != 1)
		return "descry does not know where this version's lines begin";
	if (!object_symbol_value(o, "ruby_vm_event_enabled_global_flags", &ret->events) ||
	    !object_symbol_value(o, v[0].name, &v[0].addr) ||
	    !object_symbol_value(o, v[1].name, &v[1].addr) ||
	    !object_text_segment(o, 0, &off, &n, &addr) || n > TEXT_MAX)
		return "it does not export the variables of its events";
	find_slots(o, v, ARRAY_SIZE(v));
	r.text = (struct ruby_range){ addr, n };
	text = xmalloc(n);
	ret->function = find_function(&r, text, object_read(o, addr, text, (uint32_t)n), v);
	free(text);
	free(r.table);
	return ret->function ? NULL : "its code that looks for events is not as in other builds";
}
