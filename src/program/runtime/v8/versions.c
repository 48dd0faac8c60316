/* descry's facts about each version of V8. */
#include "program/runtime/v8/v8.h"

/* The operands of the opcodes of translations (translation-opcode.h), and the opcodes that begin a
 * translation or a frame of JavaScript, by version. */
#define VERSION(major_, minor_, node_, operands_, ...) \
	{ \
		.major = major_, .minor = minor_, .node = node_, .operands = operands_, \
		__VA_ARGS__ \
	}

static const struct v8_version versions[] = {
	VERSION(10, 2, "18", "2103113131111111115334111112", .stream_start = 128, .code_data = 16,
		.code_places = 24, .code_flags = 48, .code_size = 40, .bytecodes_positions = 32,
		.shared_data = 8, .deopt_literals = 2, .deopt_first = 11,
		.op = { .begin = { 3, 3 },
			.frame = { 18, 18, 19, 20 },
			.match = 0xff,
			.literal = 22,
			.interpreted = 2,
			.begin_frames = 1,
			.is_signed = true },
		.opcodes = 198),
	VERSION(11, 3, "20", "103311313111112111111115333401111121", .stream_code = 8,
		.stream_start = 16, .code_data = 16, .code_places = 24, .code_start = 40,
		.code_flags = 48, .code_size = 56, .bytecodes_positions = 32, .shared_data = 8,
		.maglev = 16, .deopt_literals = 2, .deopt_first = 11,
		.op = { .begin = { 2, 3 },
			.frame = { 23, 24, 25, 26 },
			.match = 35,
			.literal = 29,
			.interpreted = 2,
			.begin_frames = 2 },
		.opcodes = 198),
	VERSION(12, 4, "22", "5333213432103311111111111111111101111121", .stream_code = 8,
		.stream_start = 32, .code_data = 8, .code_places = 16, .code_start = 40,
		.code_flags = 48, .code_size = 52, .bytecodes_positions = 24, .shared_data = 8,
		.maglev = 16, .deopt_literals = 2, .deopt_first = 11,
		.op = { .begin = { 12, 13 },
			.frame = { 0, 1, 2, 3 },
			.match = 39,
			.literal = 33,
			.interpreted = 2,
			.begin_frames = 2 },
		.opcodes = 203),
	VERSION(13, 6, "24", "643321343331003311101111111111111111101111121", .stream_code = 8,
		.stream_start = 32, .code_data = 8, .code_places = 16, .code_start = 40,
		.code_flags = 52, .code_size = 56, .bytecodes_positions = 24, .shared_data = 8,
		.safepoints = 4, .maglev = 12, .deopt_literals = 3, .deopt_first = 12,
		.op = { .begin = { 14, 15 },
			.frame = { 0, 1, 2, 3 },
			.match = 44,
			.literal = 38,
			.interpreted = 2,
			.begin_frames = 2 },
		.opcodes = 208),
};

const struct v8_version *v8_version_find(int32_t major, int32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
