/* The offsets of members in the structures of each version of MRI on x86-64. They are the values of
 * offsetof() in the versions' own headers (vm_core.h, ractor_core.h, iseq.h, internal/class.h), and
 * are the same in all patch releases of a version. */
#include "program/runtime/ruby/ruby.h"

#define VERSION(major, minor) ((major) << 8 | (minor))
#define LAYOUT(major, minor, ...) \
	{ \
		.version = VERSION(major, minor), __VA_ARGS__ \
	}

#define RACTORS_3_0 \
	.vm_ractors = 8, .vm_main = 40, .ractor_node = 568, .ractor_threads = 304, .thread_vm = 32
#define RACTORS_3_3 \
	.vm_ractors = 8, .vm_main = 40, .ractor_node = 432, .ractor_threads = 256, .thread_vm = 32
#define BODY_2_7 .body_lines = 120, .body_local = 176, .line_fixnum = true
#define BODY_3_2 .body_lines = 112, .body_local = 168, .line_size = 12
#define OBJECTS_2_7 \
	.length_in_flags = true, .array_embedded = 3, .class_extra = 24, .extra_variables = 8
#define OBJECTS_3_3 \
	.array_embedded = 127, .class_path = 152, .class_attached = 128, .class_flags = 149, \
	.permanent = 1

static const struct ruby_layout layouts[] = {
	LAYOUT(2, 7, .vm_threads = 312, .thread_vm = 24, .thread_context = 32, .thread_id = 72,
	       .context_thread = 56, .frame_size = 56, BODY_2_7, .line_size = 8, OBJECTS_2_7),
	LAYOUT(3, 0, RACTORS_3_0, .thread_context = 40, .thread_id = 80, .context_thread = 56,
	       .frame_size = 56, BODY_2_7, .line_size = 8, OBJECTS_2_7),
	LAYOUT(3, 1, RACTORS_3_0, .thread_context = 40, .thread_id = 80, .context_thread = 48,
	       .frame_size = 64, BODY_2_7, .line_size = 12, OBJECTS_2_7),
	LAYOUT(3, 2, RACTORS_3_0, .thread_native = 40, .thread_context = 48, .thread_id = 8,
	       .context_thread = 48, .frame_size = 64, BODY_3_2, .array_embedded = 127,
	       .vm_shapes = 376, .class_values = 32),
	LAYOUT(3, 3, RACTORS_3_3, .thread_native = 40, .thread_context = 48, .thread_id = 16,
	       .context_thread = 48, .frame_size = 56, BODY_3_2, OBJECTS_3_3),
	LAYOUT(3, 4, RACTORS_3_3, .thread_native = 40, .thread_context = 48, .thread_id = 16,
	       .context_thread = 48, .frame_size = 56, BODY_3_2, OBJECTS_3_3),
};

const struct ruby_layout *ruby_layout(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (major < 256 && minor < 256 && layouts[i].version == VERSION(major, minor))
			return &layouts[i];
	return NULL;
}
