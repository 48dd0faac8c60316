/* BPF maps in this process's memory. */
#include "load/interp/interp_maps.h"

#include <errno.h>

enum { CHUNK_VALUES = 64, RING_HEADER = 8 };

bool interp_map_is_array(const struct interp_map *m)
{
	return m->def->type == BPF_MAP_TYPE_ARRAY || m->def->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

struct err *interp_map_init(struct interp_map *m, const struct image_map *def, uint32_t index,
			    uint32_t ncpus, struct interp_mem *mem)
{
	uint64_t size;

	memset(m, 0, sizeof(*m));
	m->def = def;
	m->index = index;
	m->stride = (def->value_size + 7) & ~7u;
	m->max_entries = def->max_entries * (def->role == MAP_SCRATCH ? ncpus : 1);
	switch (def->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		size = (uint64_t)m->stride * m->max_entries;
		if (def->key_size != 4 || !size || size > UINT32_MAX)
			return err_new(EINVAL, "map %s: an array of %u entries of %u bytes",
				       def->name, m->max_entries, def->value_size);
		vec_push(&m->blocks, xcalloc(1, size));
		interp_mem_add(mem, m->blocks.v[0], size, !(def->flags & BPF_F_RDONLY_PROG));
		for (uint32_t i = 0; def->init && i < (def->ninit ? def->ninit : 1); i++) {
			if (i < m->max_entries)
				memcpy(m->blocks.v[0] + (size_t)i * m->stride,
				       (const uint8_t *)def->init + (size_t)i * def->value_size,
				       def->value_size);
		}
		return NULL;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		if (!def->key_size || !def->value_size || !m->max_entries)
			return err_new(EINVAL, "map %s: no key, value or entries", def->name);
		return NULL;
	case BPF_MAP_TYPE_TASK_STORAGE:
		m->max_entries = UINT32_MAX; /* one for each task */
		return NULL;
	case BPF_MAP_TYPE_RINGBUF:
	case BPF_MAP_TYPE_STACK_TRACE: return NULL;
	default:
		return err_new(ENOTSUP, "map %s: type %d is not known to the interpreter",
			       def->name, def->type);
	}
}

void interp_map_fini(struct interp_map *m, struct interp_mem *mem)
{
	for (uint32_t i = 0; i < m->blocks.n; i++) {
		interp_mem_del(mem, m->blocks.v[i]);
		free(m->blocks.v[i]);
	}
	for (uint32_t i = 0; i < m->ring.n; i++) {
		interp_mem_del(mem, m->ring.v[i].data);
		free(m->ring.v[i].data);
	}
	vec_fini(&m->blocks);
	vec_fini(&m->free_values);
	vec_fini(&m->ring);
	hash_fini(&m->keys);
}

static uint32_t key_size(const struct interp_map *m)
{
	/* task storage: helpers use the task's address as key */
	return m->def->type == BPF_MAP_TYPE_TASK_STORAGE ? 8 : m->def->key_size;
}

static bool is_hash(const struct interp_map *m)
{
	switch (m->def->type) {
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
	case BPF_MAP_TYPE_TASK_STORAGE: return true;
	default: return false;
	}
}

static uint8_t *value_at(struct interp_map *m, uint64_t number)
{
	return m->blocks.v[number / CHUNK_VALUES] + (number % CHUNK_VALUES) * m->stride;
}

uint8_t *interp_map_lookup(struct interp_map *m, const void *key)
{
	uint64_t *number;
	uint32_t i;

	if (interp_map_is_array(m)) {
		memcpy(&i, key, sizeof(i));
		return i < m->max_entries ? m->blocks.v[0] + (size_t)i * m->stride : NULL;
	}
	if (!is_hash(m))
		return NULL;
	number = hash_get(&m->keys, key, key_size(m));
	return number ? value_at(m, *number) : NULL;
}

static uint8_t *new_value(struct interp_map *m, struct interp_mem *mem, uint32_t *ret_number)
{
	uint8_t *block;

	if (m->free_values.n) {
		*ret_number = m->free_values.v[--m->free_values.n];
		return value_at(m, *ret_number);
	}
	if (m->used_values == m->blocks.n * CHUNK_VALUES) {
		block = xcalloc(CHUNK_VALUES, m->stride);
		vec_push(&m->blocks, block);
		interp_mem_add(mem, block, (uint64_t)CHUNK_VALUES * m->stride, true);
	}
	*ret_number = m->used_values++;
	return value_at(m, *ret_number);
}

/* Makes room in an LRU map by removing any entry. The kernel's LRU maps do not promise an order
 * either. The search goes on where the last one ended, because the slots before are empty. */
static void evict(struct interp_map *m)
{
	const void *key;
	size_t len;

	for (int i = 0; i < 2; i++) {
		if (hash_next(&m->keys, &m->evict_at, &key, &len, NULL)) {
			cleanup_free void *copy = xmemdup(key, len);

			interp_map_delete(m, copy);
			return;
		}
		m->evict_at = 0;
	}
}

int interp_map_update(struct interp_map *m, struct interp_mem *mem, const void *key,
		      const void *value, uint64_t flags)
{
	uint8_t *p = interp_map_lookup(m, key);
	uint32_t number;
	bool lru = m->def->type == BPF_MAP_TYPE_LRU_HASH ||
		   m->def->type == BPF_MAP_TYPE_LRU_PERCPU_HASH;

	if (flags > BPF_EXIST)
		return -EINVAL;
	if (interp_map_is_array(m)) {
		if (!p)
			return -E2BIG;
	} else if (!is_hash(m)) {
		return -EINVAL;
	}
	if (p && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!p && flags == BPF_EXIST)
		return -ENOENT;
	if (!p) {
		if (m->keys.n >= m->max_entries) {
			if (!lru)
				return -E2BIG;
			evict(m);
		}
		p = new_value(m, mem, &number);
		*hash_put(&m->keys, key, key_size(m), NULL) = number;
	}
	if (value)
		memmove(p, value, m->def->value_size);
	else
		memset(p, 0, m->def->value_size);
	return 0;
}

int interp_map_delete(struct interp_map *m, const void *key)
{
	uint64_t *number;

	if (!is_hash(m))
		return -EINVAL;
	number = hash_get(&m->keys, key, key_size(m));
	if (!number)
		return -ENOENT;
	vec_push(&m->free_values, (uint32_t)*number);
	hash_del(&m->keys, key, key_size(m));
	return 0;
}

static uint64_t ring_space(uint64_t size)
{
	return (size + RING_HEADER + 7) & ~7ull;
}

void *interp_ring_reserve(struct interp_map *m, struct interp_mem *mem, uint64_t size)
{
	struct ring_record r = { .size = (uint32_t)size };

	if (m->def->type != BPF_MAP_TYPE_RINGBUF || size > m->max_entries ||
	    m->ring_used + ring_space(size) > m->max_entries)
		return NULL;
	m->ring_used += ring_space(size);
	r.data = xcalloc(1, size ? size : 1);
	interp_mem_add(mem, r.data, size, true);
	vec_push(&m->ring, r);
	return r.data;
}

bool interp_ring_finish(struct interp_map *m, struct interp_mem *mem, const void *data,
			bool discard)
{
	for (uint32_t i = m->ring.n; i-- > 0;) {
		struct ring_record *r = &m->ring.v[i];

		if (r->data != data || r->state != RING_BUSY)
			continue;
		r->state = discard ? RING_DISCARDED : RING_READY;
		interp_mem_del(mem, data);
		return true;
	}
	return false;
}
