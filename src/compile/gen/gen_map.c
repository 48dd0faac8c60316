/* Generates the maps of an image and its read-only data. */
#include "compile/gen/gen_private.h"

#include "wire/language.h"
#include "wire/late.h"
#include "wire/wire_record.h"
#include "wire/tick.h"
#include "wire/wire_unwind.h"

uint32_t gen_map(struct gen *g, enum map_role role, const char *name, enum bpf_map_type type,
		 uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
	vec_push(&g->maps, (struct image_map){ .name = name,
					       .role = role,
					       .type = type,
					       .key_size = key,
					       .value_size = value,
					       .max_entries = entries,
					       .flags = flags });
	return g->maps.n - 1;
}

static uint32_t power_of_two(uint64_t n)
{
	uint32_t p = 4096;

	while (p < n && p < 1u << 30)
		p *= 2;
	return p;
}

/* Returns the bytes of the data ring. With bufpolicy=fill and =ring the consumer keeps bufsize
 * bytes itself, and the ring only carries records to it. */
static uint64_t data_size(const struct options *o)
{
	enum { WAY = 4 << 20 };
	int64_t size = opt_num(o, OPT_BUFSIZE);

	return (uint64_t)(opt_num(o, OPT_BUFPOLICY) && size < WAY ? WAY : size);
}

/* Returns the map of this role and makes it first if needed. gen_finish_maps() fills in sizes that
 * depend on the whole program. */
uint32_t gen_fixed_map(struct gen *g, enum map_role role)
{
	int *at = &g->map_of[role];

	if (*at >= 0)
		return (uint32_t)*at;
	switch (role) {
	case MAP_STATE:
		*at = (int)gen_map(g, role, "state", BPF_MAP_TYPE_ARRAY, 4,
				   sizeof(struct wire_state), 1, BPF_F_MMAPABLE);
		break;
	case MAP_DATA:
		*at = (int)gen_map(g, role, "data", BPF_MAP_TYPE_RINGBUF, 0, 0,
				   power_of_two(data_size(g->options)), 0);
		break;
	case MAP_CONTROL:
		*at = (int)gen_map(g, role, "control", BPF_MAP_TYPE_RINGBUF, 0, 0, 1u << 19, 0);
		break;
	case MAP_GLOBALS:
		*at = (int)gen_map(g, role, "globals", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
		break;
	case MAP_RODATA:
		*at = (int)gen_map(g, role, "rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1,
				   BPF_F_RDONLY_PROG);
		break;
	case MAP_SCRATCH:
		*at = (int)gen_map(g, role, "scratch", BPF_MAP_TYPE_ARRAY, 4, 8, SCRATCH_SLOTS, 0);
		break;
	case MAP_TLS:
		*at = (int)gen_map(g, role, "self", BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0,
				   BPF_F_NO_PREALLOC);
		break;
	case MAP_COUNTERS:
		*at = (int)gen_map(g, role, "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 0, 0);
		break;
	case MAP_STACKS:
		/* Interrupts are off in a thread switch, where adding an element sometimes fails.
		 * The elements of these programs are therefore preallocated. */
		*at = (int)gen_map(g, role, "stacks", BPF_MAP_TYPE_HASH, 8,
				   sizeof(struct wire_stack),
				   g->uses_switch_stacks ? 1u << 14 : 1u << 16,
				   g->uses_switch_stacks ? 0 : BPF_F_NO_PREALLOC);
		break;
	case MAP_LATE:
		*at = (int)gen_map(g, role, "late", BPF_MAP_TYPE_HASH, 4,
				   sizeof(struct wire_late_wait), 4096, BPF_F_NO_PREALLOC);
		break;
	case MAP_UNWIND:
		*at = (int)gen_map(g, role, "unwind", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4,
				   WIRE_UNWIND_CHUNKS, 0);
		break;
	case MAP_UNWIND_PROCESSES:
		*at = (int)gen_map(g, role, "unwind_procs", BPF_MAP_TYPE_HASH, 4,
				   sizeof(struct wire_unwind_process), WIRE_UNWIND_PROCESSES, 0);
		break;
	case MAP_UNWIND_WANTED:
		*at = (int)gen_map(g, role, "unwind_wanted", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
		break;
	case MAP_SAMPLES:
		*at = (int)gen_map(g, role, "samples", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
				   sizeof(struct wire_samples), 1, 0);
		break;
	case MAP_FUNCTIONS:
		*at = (int)gen_map(g, role, "functions", BPF_MAP_TYPE_ARRAY, 4, 8 * WIRE_FUNCTIONS,
				   1, 0);
		break;
	case MAP_TICKS:
		*at = (int)gen_map(g, role, "ticks", BPF_MAP_TYPE_ARRAY, 4,
				   sizeof(struct wire_tick), 1, BPF_F_MMAPABLE);
		break;
	default: abort();
	}
	return (uint32_t)*at;
}

uint32_t gen_rodata(struct gen *g, const void *p, uint32_t n, uint32_t align)
{
	uint32_t at;

	while (g->rodata.n % align)
		vec_push(&g->rodata, 0);
	at = g->rodata.n;
	for (uint32_t i = 0; i < n; i++)
		vec_push(&g->rodata, p ? ((const uint8_t *)p)[i] : 0);
	return at;
}

void gen_finish_maps(struct gen *g)
{
	for (uint32_t i = 0; i < g->maps.n; i++) {
		struct image_map *m = &g->maps.v[i];

		switch (m->role) {
		case MAP_GLOBALS: m->value_size = g->globals_size; break;
		case MAP_RODATA: {
			uint8_t *init = arena_alloc(g->arena, g->rodata.n + 8);

			memcpy(init, g->rodata.v, g->rodata.n);
			m->value_size = (g->rodata.n + 7) & ~7u;
			m->init = init;
			m->ninit = 1;
			break;
		}
		case MAP_SCRATCH: m->value_size = (g->scratch_size + 7) & ~7u; break;
		case MAP_TLS: m->value_size = g->tls_size; break;
		case MAP_COUNTERS:
			m->max_entries = WIRE_FIXED_COUNTERS + WIRE_PROBE_SLOTS * g->probes.n;
			break;
		case MAP_SAMPLES: m->max_entries = g->nsamples; break;
		case MAP_TICKS: m->value_size = g->nticks * sizeof(struct wire_tick); break;
		default: break;
		}
	}
}
