/* From a frame of compiled code or of a stub to its caller.
 *
 *	sp + frame - 8    return address
 *	sp + frame - 16   rbp of the caller
 *	sp                locals, and arguments of functions that it calls
 *
 * While a frame is built or removed, the instructions show the place of the return address.
 * HotSpot's compilers begin and end functions with these instructions. */
#include <string.h>

#include "program/runtime/jvm/jvm.h"

enum { CODE_MAX = 96, RBP_FRAME_MAX = 1 << 16, PUSHED_MAX = 64 };

/* Instructions, from the address `at` on. */
struct code {
	uint8_t bytes[CODE_MAX + 16];
	uint32_t n, i;
};

static bool code_read(const struct jvm *j, uint64_t at, uint64_t end, struct code *ret)
{
	uint64_t n = end > at ? end - at : 0;

	memset(ret, 0, sizeof(*ret));
	ret->n = space_read_some(j->runtime.space, at, ret->bytes,
				 n < CODE_MAX ? (uint32_t)n : CODE_MAX);
	return ret->n;
}

/* Takes an instruction that begins with these bytes and has the given number of further ones. */
static bool caller_take(struct code *c, const char *bytes, uint32_t len, uint32_t more)
{
	if (c->n - c->i < len + more || memcmp(c->bytes + c->i, bytes, len))
		return false;
	c->i += len + more;
	return true;
}
#define TAKE(c, bytes, more) caller_take(c, bytes, sizeof(bytes) - 1, more)

static int64_t last_i32(const struct code *c)
{
	int32_t v;

	memcpy(&v, c->bytes + c->i - 4, 4);
	return v;
}

static int64_t last_i8(const struct code *c)
{
	return (int8_t)c->bytes[c->i - 1];
}

/* Sets the caller's stack pointer, and the place of its rbp; 0: it is in rbp. */
struct found {
	uint64_t sp, rbp_at;
};

static bool go(const struct jvm *j, struct unwind_cursor *c, const struct found *f)
{
	uint64_t pc, bp = c->bp;

	if (f->sp <= c->sp || f->sp & 7 || !jvm_word(j, f->sp - 8, &pc) ||
	    (f->rbp_at && !jvm_word(j, f->rbp_at, &bp)))
		return false;
	c->pc = pc;
	c->sp = f->sp;
	c->bp = bp;
	return true;
}

/* Recognises the end of a function: the instructions from pc on remove its frame and return. */
static bool ending(const struct jvm *j, const struct jvm_blob *b, const struct unwind_cursor *c,
		   struct found *ret)
{
	struct found f = { .sp = c->sp };
	struct code k;

	if (!code_read(j, c->pc, b->end, &k))
		return false;
	for (;;) {
		if (TAKE(&k, "\xc3", 0) || TAKE(&k, "\xc2", 2)) { /* ret */
			f.sp += 8;
			*ret = f;
			return true;
		} else if (TAKE(&k, "\x48\x83\xc4", 1)) { /* add $i8, %rsp */
			f.sp += (uint64_t)last_i8(&k);
		} else if (TAKE(&k, "\x48\x81\xc4", 4)) {
			f.sp += (uint64_t)last_i32(&k);
		} else if (TAKE(&k, "\x5d", 0)) { /* pop %rbp */
			f.rbp_at = f.sp;
			f.sp += 8;
		} else if (TAKE(&k, "\xc9", 0)) { /* leave */
			f.rbp_at = c->bp;
			f.sp = c->bp + 8;
		} else if (TAKE(&k, "\x49\x3b\xa7", 4) || /* cmp disp(%r15), %rsp */
			   TAKE(&k, "\x49\x3b\x67", 1) || TAKE(&k, "\x0f\x87", 4) || /* ja */
			   TAKE(&k, "\x4d\x8b\x57", 1) || /* mov disp(%r15), %r10 */
			   TAKE(&k, "\x4d\x8b\x97", 4) ||
			   TAKE(&k, "\x41\x85\x02", 0) || /* test %eax, (%r10) */
			   TAKE(&k, "\xc5\xf8\x77", 0)) { /* vzeroupper */
			continue;
		} else {
			return false;
		}
	}
}

/* Recognises the beginning of a function at `entry`: the part of the frame that the instructions
 * before pc have built. Returns false when they have built the whole frame, or are others. */
static bool beginning(const struct jvm *j, const struct jvm_blob *b, const struct unwind_cursor *c,
		      uint64_t entry, struct found *ret)
{
	uint64_t depth = 0; /* bytes below the return address */
	uint64_t rbp = 0;   /* depth of the saved rbp */
	struct code k;

	if (c->pc < entry || c->pc - entry >= CODE_MAX || !code_read(j, entry, b->end, &k))
		return false;
	while (k.i < c->pc - entry) {
		if (TAKE(&k, "\x55", 0)) { /* push %rbp */
			depth += 8;
			rbp = depth;
		} else if (TAKE(&k, "\x48\x83\xec", 1)) { /* sub $i8, %rsp */
			depth += (uint64_t)last_i8(&k);
		} else if (TAKE(&k, "\x48\x81\xec", 4)) {
			depth += (uint64_t)last_i32(&k);
		} else if (TAKE(&k, "\x48\x89\x6c\x24", 1)) { /* mov %rbp, disp(%rsp) */
			rbp = depth - (uint64_t)last_i8(&k);
		} else if (TAKE(&k, "\x48\x89\xac\x24", 4)) {
			rbp = depth - (uint64_t)last_i32(&k);
		} else if (TAKE(&k, "\x89\x84\x24", 4) || /* mov %eax, disp(%rsp) */
			   TAKE(&k, "\x48\x8b\xec", 0) || /* mov %rsp, %rbp */
			   TAKE(&k, "\x48\x89\xe5", 0) || /* the same */
			   TAKE(&k, "\x0f\x1f\x44\x00", 1) || TAKE(&k, "\x66\x66\x90", 0) ||
			   TAKE(&k, "\x66\x90", 0) || TAKE(&k, "\x90", 0)) { /* nops */
			continue;
		} else {
			return false;
		}
	}
	ret->sp = c->sp + depth + 8;
	ret->rbp_at = rbp ? c->sp + depth - rbp : 0;
	return k.i == c->pc - entry;
}

static void whole_frame(const struct jvm_blob *b, const struct unwind_cursor *c, struct found *ret)
{
	ret->sp = c->sp + b->frame;
	ret->rbp_at = ret->sp - 16;
}

/* Finds the caller of a function that is in the middle of an instruction stream: not at a call. */
static bool compiled(const struct jvm *j, const struct jvm_blob *b, const struct unwind_cursor *c,
		     struct found *ret)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t entry = jvm_get(j, b->address, l->compiled_entry);
	bool osr = (int32_t)jvm_get(j, b->address, l->compiled_osr_bci) != -1;

	if (l->compiled_entry_offset.width)
		entry = b->code + jvm_get(j, b->address, l->compiled_entry_offset);
	if (osr)
		entry = jvm_get(j, b->address, l->compiled_osr_entry);
	if (beginning(j, b, c, entry, ret))
		return true;
	/* Before its entry, a function checks the receiver's class. Some functions have no frame
	 * and jump. */
	if ((!osr && c->pc < entry) || !b->frame) {
		*ret = (struct found){ .sp = c->sp + 8 };
		return true;
	}
	whole_frame(b, c, ret);
	return true;
}

/* Returns true when addr lies behind a call in the code cache or in the JVM's own code. */
static bool is_return(struct jvm *j, uint64_t addr)
{
	struct jvm_blob b;
	uint8_t k[7];

	if (!jvm_blob_find(j, addr - 1, &b) || b.kind == JVM_STUBS)
		return addr && addr == jvm_get(j, j->layout.variable.call_stub_return,
					       (struct jvm_member){ 0, 8 });
	if (space_read_some(j->runtime.space, addr - sizeof(k), k, sizeof(k)) != sizeof(k))
		return false;
	/* call rel32; call *%reg; call *disp8(%reg), call *disp32(%reg) */
	return k[2] == 0xe8 || (k[5] == 0xff && (k[6] & 0xf8) == 0xd0) ||
	       (k[4] == 0xff && (k[5] & 0xf8) == 0x50) || (k[1] == 0xff && (k[2] & 0xf8) == 0x90) ||
	       b.kind == JVM_INTERPRETER;
}

/* A stub has no frame, or one that rbp links, and may have pushed registers. The first return
 * address on the stack is its own. */
static bool interrupted_stub(struct jvm *j, const struct unwind_cursor *c, struct found *ret)
{
	uint64_t word;

	for (uint32_t i = 0; i < PUSHED_MAX; i++) {
		uint64_t at = c->sp + i * 8ull;

		if (!jvm_word(j, at, &word))
			return false;
		if (is_return(j, word)) {
			*ret = (struct found){ .sp = at + 8,
					       .rbp_at = c->bp + 8 == at ? c->bp : 0 };
			return true;
		}
	}
	return false;
}

static bool stub(struct jvm *j, const struct jvm_blob *b, const struct unwind_cursor *c,
		 struct found *ret)
{
	if (!c->called)
		return ending(j, b, c, ret) || interrupted_stub(j, c, ret);
	if (c->bp < c->sp || c->bp - c->sp > RBP_FRAME_MAX || c->bp & 7)
		return false;
	*ret = (struct found){ .sp = c->bp + 16, .rbp_at = c->bp };
	return true;
}

bool jvm_caller(struct jvm *j, const struct jvm_blob *b, struct unwind_cursor *c)
{
	struct found f = { 0 };
	bool ok = true;

	if (b->kind == JVM_STUBS)
		ok = stub(j, b, c, &f);
	else if (c->called && b->frame)
		whole_frame(b, c, &f);
	else if (ending(j, b, c, &f))
		ok = true;
	else if (b->kind == JVM_COMPILED)
		ok = compiled(j, b, c, &f);
	else if (c->pc >= b->complete || !beginning(j, b, c, b->code, &f))
		whole_frame(b, c, &f);
	return ok && go(j, c, &f);
}
