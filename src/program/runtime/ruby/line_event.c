/* Finds the function by which Ruby 3.1 and 3.3 look at the events of an instruction.
 *
 * Instructions at which a line begins have a second form that calls it: vm_trace(). Ruby makes an
 * iseq with these forms when the event is in ruby_vm_event_enabled_global_flags. The function
 * returns at once when no TracePoint is enabled, which it learns from two variables. 3.1 exports
 * them; the function is not exported, so it is found by the code that reads both. 3.3 exports none
 * of the three variables. They are found by the constant of all events that iseqs may have: the
 * function takes these of the first variable, and then reads the second one. Two functions and more
 * take these of a variable whose address they have in a register, which is the third one. */
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
	/* 3.3: and reg, events; or reg, [rip + distance]; lea reg, [rip + distance] */
	EVENTS = 0x3437f,
	AND = 0x81,
	AND_FORM = 0xe0,
	FORM_OF_REGISTER = 0xf8,
	AND_SIZE = 6,
	OR = 0x0b,
	LEA = 0x8d,
	REX_W = 0x48,
	REX_WR = 0x4c,
	BEFORE = 40,  /* bytes from an address to its use */
	USERS = 2,    /* functions that use the third variable, or more */
	APART = 256,  /* bytes between the variables, at most */
	MARGIN = 128, /* bytes at both ends of the text that are not searched */
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

/* --- Ruby 3.3 --- */

static uint64_t rip_target(const uint8_t *code, uint64_t addr)
{
	int32_t distance;

	memcpy(&distance, code + 2, sizeof(distance));
	return addr + LOAD_SIZE + (uint64_t)(int64_t)distance;
}

/* Returns true when the bytes take the events of a register. */
static bool takes_events(const uint8_t *code)
{
	const uint32_t events = EVENTS;

	return code[0] == AND && (code[1] & FORM_OF_REGISTER) == AND_FORM &&
	       !memcmp(code + 2, &events, sizeof(events));
}

/* Returns true for a load of the first variable of which the events are taken, before a word is
 * added to these. */
static bool begins_trace(const uint8_t *code)
{
	bool adds = false;

	if (code[0] != LOADS || (code[1] & FORM_MASK) != RIP_FORM ||
	    !takes_events(code + LOAD_SIZE))
		return false;
	for (uint32_t k = LOAD_SIZE + AND_SIZE; k < NEAR / 2; k++)
		adds |= code[k] == OR && (code[k + 1] & FORM_MASK) == RIP_FORM;
	return adds;
}

/* Finds the function, and the variable that it loads. */
static bool find_trace(struct ruby *r, const uint8_t *text, uint32_t n, uint64_t *ret_function,
		       uint64_t *ret_variable)
{
	struct ruby_range f;
	uint32_t found = 0;

	for (uint32_t i = MARGIN; i + MARGIN <= n; i++) {
		uint64_t addr = r->text.start + i;

		if (!begins_trace(text + i) || !ruby_function(r, addr, &f) || addr - f.start > LEAD)
			continue;
		*ret_function = f.start;
		*ret_variable = rip_target(text + i, addr);
		found++;
	}
	return found == 1;
}

/* Finds the variable whose address is in a register a little before the events of a word are taken.
 * Returns 0 when there is no such variable, or when there are several. */
static uint64_t find_enabled(struct ruby *r, const uint8_t *text, uint32_t n, uint64_t variable)
{
	uint64_t found = 0;
	uint32_t users = 0;

	for (uint32_t i = MARGIN; i + MARGIN <= n; i++) {
		if (!takes_events(text + i))
			continue;
		for (uint32_t k = 1; k < BEFORE; k++) {
			const uint8_t *code = text + i - k;
			const uint64_t to = rip_target(code, r->text.start + i - k);

			if (code[0] != LEA || (code[1] & FORM_MASK) != RIP_FORM ||
			    (code[-1] != REX_W && code[-1] != REX_WR) || to == variable ||
			    (to < variable ? variable - to : to - variable) > APART)
				continue;
			if (found && found != to)
				return 0;
			found = to;
			users++;
		}
	}
	return users >= USERS ? found : 0;
}

static bool find_unnamed(struct ruby *r, const uint8_t *text, uint32_t n,
			 struct ruby_line_event *ret)
{
	uint64_t variable = 0;

	if (!find_trace(r, text, n, &ret->function, &variable))
		return false;
	ret->events = find_enabled(r, text, n, variable);
	return ret->events;
}

static bool find_named(struct ruby *r, const uint8_t *text, uint32_t n, struct ruby_line_event *ret)
{
	struct variable v[] = { { "ruby_vm_event_flags", 0, 0 },
				{ "ruby_vm_event_local_num", 0, 0 } };

	if (!object_symbol_value(r->object, "ruby_vm_event_enabled_global_flags", &ret->events) ||
	    !object_symbol_value(r->object, v[0].name, &v[0].addr) ||
	    !object_symbol_value(r->object, v[1].name, &v[1].addr))
		return false;
	find_slots(r->object, v, ARRAY_SIZE(v));
	ret->function = find_function(r, text, n, v);
	return ret->function;
}

const char *ruby_line_event(struct object *o, struct ruby_line_event *ret)
{
	uint64_t off, n, addr, version;
	struct ruby r = { .object = o };
	uint8_t *text;
	int32_t number[2];
	uint16_t v;
	bool found;

	if (!object_symbol_value(o, "ruby_api_version", &version) ||
	    object_read(o, version, number, sizeof(number)) != sizeof(number))
		return "descry does not find its version";
	v = (uint16_t)(number[0] << 8 | number[1]);
	if (v != RUBY_3_1 && v != RUBY_3_3)
		return "descry does not know where this version's lines begin";
	if (!object_text_segment(o, 0, &off, &n, &addr) || n > TEXT_MAX)
		return "its code is not as in other builds";
	text = xmalloc(n);
	r.text = (struct ruby_range){ addr, object_read(o, addr, text, (uint32_t)n) };
	ret->is_3_3 = v == RUBY_3_3;
	found = (ret->is_3_3 ? find_unnamed : find_named)(&r, text, (uint32_t)r.text.size, ret);
	free(text);
	free(r.table);
	return found ? NULL : "its code that looks for events is not as in other builds";
}
