/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers to the question whether a description selects the function in which a probe fires, as a
 * program remembers them (wire_function_answer()). agent/key.c does the same in-process. */

INLINE u64 function_answer(void *map, u64 number)
{
	u32 key = 0;
	const u64 *table = bpf_map_lookup_elem(map, &key);

	return table ? wire_function_answer(table, number) : WIRE_FUNCTION_UNKNOWN;
}

ROUTINE u64 d_id_python(void *map, u64 frame, u64 path, u64 salt)
{
	u64 code = ruby_word(frame + (path & 0xffff)), about[WIRE_LANGUAGE_ABOUT];
	u64 v = WIRE_FUNCTION_UNKNOWN;

	salt ^= bpf_get_current_pid_tgid() >> 32 << 32;
	if (!bpf_probe_read_user(about, sizeof(about), (const void *)(code + (path >> 16))))
		v = function_answer(map, wire_function_id(code, about, salt));
	RESULT(v);
}

ROUTINE u64 d_id_ruby(void *map, u64 frame, u64 entry, u64 salt)
{
	u64 about[WIRE_LANGUAGE_ABOUT], v = WIRE_FUNCTION_UNKNOWN;

	salt ^= bpf_get_current_pid_tgid() >> 32 << 32;
	if (!entry)
		entry = ruby_method_of(frame);
	if (entry && !bpf_probe_read_user(about, sizeof(about),
					  (const void *)(entry + RUBY_ENTRY_DEFINITION)))
		v = function_answer(map, wire_function_id(entry, about, salt));
	RESULT(v);
}

struct function_text {
	u64 words[WIRE_FUNCTION_TEXT];
};

/* Returns h with the words of a text of n bytes (0: up to a NUL). 0: not known. */
INLINE u64 function_text(struct function_text *b, u64 h, u64 s, u32 n)
{
	long got = n;

	for (u32 i = 0; i < WIRE_FUNCTION_TEXT; i++)
		b->words[i] = 0;
	if (!n) {
		got = bpf_probe_read_user_str(b, sizeof(*b), (const void *)s);
		if (got >= (long)sizeof(*b))
			return 0;
	} else if (n > sizeof(*b) || bpf_probe_read_user(b, n, (const void *)s)) {
		return 0;
	}
	for (u32 i = 0; i < WIRE_FUNCTION_TEXT && (long)(8 * i) < got; i++)
		h = wire_function_mix(h, b->words[i]);
	return got > 0 ? h : 0;
}

ROUTINE u64 d_id_texts(void *map, u64 first, u64 second, u64 lengths, u64 salt)
{
	u64 h = wire_function_mix(salt, lengths), v = WIRE_FUNCTION_UNKNOWN;
	struct function_text b;

	h = function_text(&b, h, first, (u32)lengths);
	if (h)
		h = function_text(&b, h, second, (u32)(lengths >> 32));
	if (h)
		v = function_answer(map, wire_function_number(h));
	RESULT(v);
}
