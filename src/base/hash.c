/* Implements hash tables and interned strings. */
#include "base/characters.h"
#include "base/hash.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

/* Open addressing with linear probing. A deletion shifts the followers back, so there are no
 * tombstones. Keys of up to 16 bytes are stored in the slot. */
enum { KEY_INLINE = 16, CAP_MIN = 16 };

struct hash_slot {
	uint64_t hash; /* 0 = free */
	uint64_t val;
	size_t len;
	union {
		uint8_t in[KEY_INLINE];
		uint8_t *out;
	} key;
};

static struct hash_secret secret = { { 1, 2 }, { 3, 5, 7, 9, 11 } };

/* Chooses the secret before main(), so that no hash needs to ask whether there is one. A library's
 * constructor does the same. */
static __attribute__((constructor)) void choose_secret(void)
{
	enum { SIP = ARRAY_SIZE(secret.sip) };
	uint64_t v[SIP + ARRAY_SIZE(secret.word)], *at = v;
	const void *given = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
	uint64_t now;

	/* Early at boot there may be no random numbers, and a filter may refuse the call. */
	if (getrandom(v, sizeof(v), GRND_NONBLOCK) != sizeof(v)) {
		now = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid();
		if (given)
			memcpy(secret.sip, given, sizeof(secret.sip));
		for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
			now += i;
			v[i] = hash_bytes(&now, sizeof(now));
		}
	}
	for (size_t i = 0; i < SIP; i++)
		secret.sip[i] = *at++;
	for (size_t i = 0; i < ARRAY_SIZE(secret.word); i++)
		secret.word[i] = *at++ | 1;
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = v[1] << 13 | v[1] >> 51;
	v[1] ^= v[0];
	v[0] = v[0] << 32 | v[0] >> 32;
	v[2] += v[3];
	v[3] = v[3] << 16 | v[3] >> 48;
	v[3] ^= v[2];
	v[0] += v[3];
	v[3] = v[3] << 21 | v[3] >> 43;
	v[3] ^= v[0];
	v[2] += v[1];
	v[1] = v[1] << 17 | v[1] >> 47;
	v[1] ^= v[2];
	v[2] = v[2] << 32 | v[2] >> 32;
}

static uint64_t sip13(uint64_t k0, uint64_t k1, const void *p, size_t n)
{
	uint64_t v[] = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
			 k1 ^ 0x7465646279746573 };
	uint64_t last = (uint64_t)n << 56, w;
	const uint8_t *s = p;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&w, s, 8);
		v[3] ^= w;
		sip_round(v);
		v[0] ^= w;
	}
	w = 0;
	if (n)
		memcpy(&w, s, n);
	last |= w;
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct hash_secret hash_secret_set(const struct hash_secret *s)
{
	struct hash_secret was = secret;

	secret = *s;
	return was;
}

uint64_t hash_bytes(const void *p, size_t n)
{
	return sip13(secret.sip[0], secret.sip[1], p, n);
}

/* Folds a product of two words into one word, as wyhash does (Wang Yi). */
static uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t hash_word(uint64_t w)
{
	const uint64_t *s = secret.word;

	return fold(fold(w ^ s[0], s[1]) ^ s[2], s[3]);
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_word(fold(a ^ secret.word[2], secret.word[4]) ^ b);
}

uint64_t hash_fixed(const void *p, size_t n)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd6e8feb86659fd93;
	const uint8_t *s = p;
	uint64_t h = fold(n ^ k0, k1), w;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&w, s, 8);
		h = fold(h ^ w ^ k0, k1);
	}
	w = 0;
	if (n)
		memcpy(&w, s, n);
	return fold(h ^ w ^ k1, k0);
}

static const void *slot_key(const struct hash_slot *s)
{
	return s->len <= KEY_INLINE ? s->key.in : s->key.out;
}

static void slot_clear(struct hash_slot *s)
{
	if (s->hash && s->len > KEY_INLINE)
		free(s->key.out);
	memset(s, 0, sizeof(*s));
}

static uint64_t key_hash(const void *key, size_t len)
{
	uint64_t h = hash_bytes(key, len);

	return h ? h : 1;
}

/* Returns the slot that holds key, or the free slot where it belongs. */
static struct hash_slot *slot_find(const struct hash *h, uint64_t hash, const void *key, size_t len)
{
	uint32_t mask = h->cap - 1, i = (uint32_t)hash & mask;
	struct hash_slot *s;

	for (;; i = (i + 1) & mask) {
		s = &h->slots[i];
		if (!s->hash)
			return s;
		if (s->hash == hash && s->len == len && (!len || !memcmp(slot_key(s), key, len)))
			return s;
	}
}

static void grow(struct hash *h)
{
	struct hash_slot *old = h->slots;
	uint32_t oldcap = h->cap, i, j, mask;

	if (oldcap > UINT32_MAX / 2)
		mem_exhausted("out of memory: a table has more than a billion entries");
	h->cap = oldcap ? oldcap * 2 : CAP_MIN;
	h->slots = xcalloc(h->cap, sizeof(*h->slots));
	mask = h->cap - 1;
	for (i = 0; i < oldcap; i++) {
		if (!old[i].hash)
			continue;
		for (j = (uint32_t)old[i].hash & mask; h->slots[j].hash; j = (j + 1) & mask)
			;
		h->slots[j] = old[i];
	}
	free(old);
}

void hash_fini(struct hash *h)
{
	for (uint32_t i = 0; i < h->cap; i++)
		slot_clear(&h->slots[i]);
	free(h->slots);
	memset(h, 0, sizeof(*h));
}

uint64_t *hash_get(const struct hash *h, const void *key, size_t len)
{
	struct hash_slot *s;

	if (!h->n)
		return NULL;
	s = slot_find(h, key_hash(key, len), key, len);
	return s->hash ? &s->val : NULL;
}

uint64_t *hash_put(struct hash *h, const void *key, size_t len, bool *ret_new)
{
	uint64_t hash = key_hash(key, len);
	struct hash_slot *s;
	bool made;

	if (h->n >= h->cap / 4 * 3)
		grow(h);
	s = slot_find(h, hash, key, len);
	made = !s->hash;
	if (made) {
		s->hash = hash;
		s->len = len;
		if (len > KEY_INLINE)
			s->key.out = xmemdup(key, len);
		else if (len)
			memcpy(s->key.in, key, len);
		h->n++;
	}
	if (ret_new)
		*ret_new = made;
	return &s->val;
}

bool hash_del(struct hash *h, const void *key, size_t len)
{
	uint32_t mask = h->cap - 1, hole, i, home;
	struct hash_slot *s;

	if (!h->n)
		return false;
	s = slot_find(h, key_hash(key, len), key, len);
	if (!s->hash)
		return false;
	slot_clear(s);
	h->n--;

	hole = (uint32_t)(s - h->slots);
	for (i = (hole + 1) & mask; h->slots[i].hash; i = (i + 1) & mask) {
		home = (uint32_t)h->slots[i].hash & mask;
		if (((i - home) & mask) < ((i - hole) & mask))
			continue; /* it would move in front of its first slot */
		h->slots[hole] = h->slots[i];
		memset(&h->slots[i], 0, sizeof(h->slots[i]));
		hole = i;
	}
	return true;
}

bool hash_next(const struct hash *h, uint32_t *pos, const void **ret_key, size_t *ret_len,
	       uint64_t **ret_val)
{
	for (; *pos < h->cap; (*pos)++) {
		struct hash_slot *s = &h->slots[*pos];

		if (!s->hash)
			continue;
		if (ret_key)
			*ret_key = slot_key(s);
		if (ret_len)
			*ret_len = s->len;
		if (ret_val)
			*ret_val = &s->val;
		(*pos)++;
		return true;
	}
	return false;
}

uint64_t hash_visits(const struct hash *h)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < h->cap; i++)
		if (h->slots[i].hash)
			n += ((i - (uint32_t)h->slots[i].hash) & (h->cap - 1)) + 1;
	return n;
}

void intern_init(struct intern *t)
{
	memset(t, 0, sizeof(*t));
	intern_strn(t, "", 0);
}

void intern_fini(struct intern *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->text[i]);
	free(t->text);
	hash_fini(&t->ids);
	memset(t, 0, sizeof(*t));
}

uint32_t intern_str(struct intern *t, const char *s)
{
	return intern_strn(t, s, strlen(s));
}

uint32_t intern_strn(struct intern *t, const char *s, size_t n)
{
	bool made;
	uint64_t *id = hash_put(&t->ids, s, n, &made);

	t->asked += n;
	if (made) {
		if (t->n == t->cap)
			vec_grow_((void **)&t->text, &t->cap, t->n + 1, sizeof(*t->text));
		*id = t->n;
		t->text[t->n] = xmalloc(n + 1);
		memcpy(t->text[t->n], s, n);
		t->text[t->n][n] = '\0';
		t->n++;
		/* the text, its copy as a key, two heads of malloc() and the slot */
		t->bytes += 2 * n + 2 * sizeof(size_t) + 2 * sizeof(struct hash_slot);
	}
	return (uint32_t)*id;
}

uint32_t intern_shown(struct intern *t, const char *s, size_t n)
{
	cleanup_free char *copy = NULL;
	size_t i = 0;

	while (i < n && !character_is_control(s[i]))
		i++;
	if (i == n)
		return intern_strn(t, s, n);
	copy = xmemdup(s, n);
	characters_show(copy, n);
	return intern_strn(t, copy, n);
}

const char *intern_text(const struct intern *t, uint32_t id)
{
	return t->text[id];
}
