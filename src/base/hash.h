/* Hash tables: bytes -> 64-bit value, and the string interner built on it. */
#ifndef DESCRY_BASE_HASH_H
#define DESCRY_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys come from files and from traced processes, which may choose them so that they collide. So a
 * table's hash depends on a secret of this process: hash_bytes(), hash_word() and hash_pair() give
 * other values in each run, and no output may depend on them or on the order of a table.
 * SipHash-1-3 (Aumasson, Bernstein 2012). */
uint64_t hash_bytes(const void *p, size_t n);
/* Hash numbers for tables of which each access counts: two or three multiplications by secrets, so
 * that neither chosen keys nor keys in a row meet. All bits of the result are good. */
uint64_t hash_word(uint64_t w);
uint64_t hash_pair(uint64_t a, uint64_t b);
/* Gives the same value in each run, for files, names and colours. Not for tables. */
uint64_t hash_fixed(const void *p, size_t n);

/* The words are odd. */
struct hash_secret {
	uint64_t sip[2], word[5];
};
/* Replaces the secret and returns the old one, for tests. Tables that exist become useless. */
struct hash_secret hash_secret_set(const struct hash_secret *s);

/* Keys are copied into the table. Zero-initialised storage is an empty table. */
struct hash {
	struct hash_slot *slots;
	uint32_t cap, n;
};
void hash_fini(struct hash *h);
/* Returns the value's address, or NULL when the key is absent. Valid until the next
 * hash_put/hash_del. */
uint64_t *hash_get(const struct hash *h, const void *key, size_t len);
/* Returns the value's address. Adds the key with value 0 when absent. Sets *ret_new, which may be
 * NULL, to whether it was added. */
uint64_t *hash_put(struct hash *h, const void *key, size_t len, bool *ret_new);
bool hash_del(struct hash *h, const void *key, size_t len);
/* Walks in unspecified order. Start with *pos = 0. Returns false at the end. The caller may not put
 * or delete during the walk. */
bool hash_next(const struct hash *h, uint32_t *pos, const void **ret_key, size_t *ret_len,
	       uint64_t **ret_val);
/* Returns how many slots one search for each key visits, all together, for tests. */
uint64_t hash_visits(const struct hash *h);

/* Interned strings: equal texts have equal ids. Id 0 is "". A text is NUL-terminated and lives as
 * long as the table. */
struct intern {
	struct hash ids;
	char **text;
	uint32_t n, cap;
	size_t bytes;   /* of all texts, about as they lie in memory */
	uint64_t asked; /* bytes of the texts that were looked up, for tests */
};
void intern_init(struct intern *t);
void intern_fini(struct intern *t);
uint32_t intern_str(struct intern *t, const char *s);
uint32_t intern_strn(struct intern *t, const char *s, size_t n);
/* Interns a name to be shown that a stranger may have chosen. Control characters become '?': a line
 * feed in the name of a function would make the rest of it a line of its own, perhaps one that
 * looks like another function's. */
uint32_t intern_shown(struct intern *t, const char *s, size_t n);
const char *intern_text(const struct intern *t, uint32_t id);

#endif
