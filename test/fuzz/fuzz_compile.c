/* The whole compiler on any D text: parse, bind, IR, eBPF. No kernel types, so that a corpus means
 * the same everywhere.
 * Checks: no crash, no leak; errors are diagnostics; an image's programs are sound eBPF
 * (isa/bpf_insn.h) and its segments' fields lie within their records.
 */
#include <assert.h>
#include <unistd.h>

#include "compile/bind/bind.h"
#include "compile/gen/gen.h"
#include "isa/bpf_insn.h"

static void check_image(const struct image *img)
{
	for (uint32_t i = 0; i < img->nprogs; i++) {
		struct err *e =
			ebpf_check(img->progs[i].insns, img->progs[i].ninsns, EBPF_UNLINKED);

		if (e)
			fprintf(stderr, "%s: %s\n", img->progs[i].name, e->text);
		assert(!e);
		for (uint32_t k = 0; k < img->progs[i].nrelocs; k++)
			assert(img->progs[i].relocs[k].insn < img->progs[i].ninsns);
	}
	for (uint32_t i = 0; i < img->nsegments; i++)
		for (uint32_t k = 0; k < img->segments[i].nfields; k++)
			assert(img->segments[i].fields[k].offset +
				       img->segments[i].fields[k].size <=
			       img->segments[i].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *argv[] = { "script.d", "42", "name" };
	bool used[ARRAY_SIZE(argv)] = { false };
	struct macro_args macros = {
		.argv = argv, .argc = ARRAY_SIZE(argv), .used = used, .target = 1, .pid = 2
	};
	struct arena arena;
	struct diags diags;
	struct options options;
	struct hash typedefs = { 0 };
	struct type_graph *types = type_graph_new();
	struct symbols *symbols = symbols_new();
	struct probe_set probes;
	struct parse_cx parse = { .arena = &arena,
				  .diags = &diags,
				  .macros = &macros,
				  .is_type = bind_is_type,
				  .typedefs = &typedefs };
	struct bind_cx bind = { .arena = &arena,
				.diags = &diags,
				.types = types,
				.probes = &probes,
				.options = &options,
				.macros = &macros,
				.parse = &parse };
	struct compile_target target = { 0 };
	struct node *top;

	parse.is_type_arg = &bind;
	type_use_kernel(types, "/nonexistent");
	arena_init(&arena);
	diags_init(&diags);
	options_init(&options);
	probe_set_init(&probes, types, symbols);
	bind_init(&bind);
	source_add(&diags, SOURCE_FILE, "fuzz.d", (const char *)data, size);
	top = parse_source(&parse, 0, PDESC_NAME);
	if (!diags.errors) {
		struct bound *b = NULL;

		bind_add(&bind, top);
		if (!diags.errors)
			b = bind_finish(&bind);
		if (b && !diags.errors) {
			struct image *img =
				compile_image(b, types, &diags, &options, &target, NULL);

			if (img)
				check_image(img);
			image_free(img);
		}
	}
	bind_fini(&bind);
	probe_set_fini(&probes);
	symbols_free(symbols);
	type_graph_free(types);
	hash_fini(&typedefs);
	options_fini(&options);
	diags_fini(&diags);
	arena_fini(&arena);
	return 0;
}
