/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers of the functions in frames of Python and Ruby, by which a program remembers whether a
 * description selects a function (wire_function_id()). 0: not known. agent/key.c computes the same
 * numbers in-process. */

ROUTINE u64 d_id_python(u64 frame, u64 path, u64 salt)
{
	u64 code = ruby_word(frame + (path & 0xffff)), about[WIRE_LANGUAGE_ABOUT], v = 0;

	if (!bpf_probe_read_user(about, sizeof(about), (const void *)(code + (path >> 16))))
		v = wire_function_id(code, about, salt ^ bpf_get_current_pid_tgid() >> 32 << 32);
	RESULT(v);
}

ROUTINE u64 d_id_ruby(u64 frame, u64 entry, u64 salt)
{
	u64 about[WIRE_LANGUAGE_ABOUT], v = 0;

	if (!entry)
		entry = ruby_method_of(frame);
	if (entry && !bpf_probe_read_user(about, sizeof(about),
					  (const void *)(entry + RUBY_ENTRY_DEFINITION)))
		v = wire_function_id(entry, about, salt ^ bpf_get_current_pid_tgid() >> 32 << 32);
	RESULT(v);
}
