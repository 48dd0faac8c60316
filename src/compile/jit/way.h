/* What a shortcut (shortcut.c) knows on one way through a program: the words in registers and on
 * the stack, and which of them are 0. */
#ifndef DESCRY_COMPILE_JIT_WAY_H
#define DESCRY_COMPILE_JIT_WAY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WAY_SLOTS = 16, /* words of the eBPF stack, from its top */
	WAY_ZEROS = 8,  /* words that were compared with 0 */
};

struct word {
	enum word_kind {
		WORD_LOST,   /* not followed */
		WORD_KNOWN,  /* the constant `at` */
		WORD_THREAD, /* `size` bytes at `at` in the thread's slot, + add */
		WORD_FIXED,  /* `size` bytes at the address `at`, + add */
		WORD_SEEN,   /* the traced program's register `at`, + add, * times */
		WORD_STACK,  /* address of the eBPF stack, + add */
		WORD_CTX,    /* address of the context, + add */
		WORD_SUM,    /* address of a value of the aggregation that is map `at`, + add */
		WORD_NAMED,  /* address of the value that jit_named() has found, in rax, + add */
		WORD_ANSWER, /* 0 or 1, in rax: jit_answer() has found it */
		WORD_OBJECT, /* an address that is not 0 */
	} kind;
	uint8_t size;
	bool narrow; /* SEEN: only the low 32 bits of the product */
	uint64_t at;
	int32_t add;
	int32_t times; /* SEEN: multiplies the sum; 0: nothing does */
};

struct way {
	struct word r[11];
	struct word slot[WAY_SLOTS]; /* the eBPF stack, from its lowest word */
	/* Words that were 0 on this way, or were not. A firing may take a word that others change
	 * to have the same value each time that it reads it. */
	struct {
		struct word word;
		bool is_zero;
	} zeros[WAY_ZEROS];
	uint32_t nzeros;
};

static inline struct word word_known(uint64_t v)
{
	return (struct word){ .kind = WORD_KNOWN, .at = v };
}

/* Returns the word at `at` from the top of the eBPF stack, or NULL. */
struct word *way_slot(struct way *w, int64_t at);
/* Forgets the words of the stack that a store of n bytes changes. */
void way_forget(struct way *w, int64_t at, uint32_t n);
/* Forgets the copies of words of the slot that a store changes. */
void way_forget_thread(struct way *w, uint64_t at, uint32_t n);
/* Forgets what is known of a word of the slot that a store changes. */
void way_forget_zeros(struct way *w, uint64_t at, uint32_t n);
/* Notes the outcome of a comparison of a word with 0. */
void way_learn_zero(struct way *w, const struct word *a, bool is_zero);
/* Returns true when it is known whether the word is 0. */
bool way_knows_zero(const struct way *w, const struct word *a, bool *ret_is_zero);

#endif
