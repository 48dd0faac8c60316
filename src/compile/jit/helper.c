/* Lists the helpers that programs may call, and the routines with native code. */
#include "compile/jit/jit_private.h"

/* The helpers, with the agent's entry for each (wire/inproc.h) and the kinds of their arguments. */
static const struct jit_helper helpers[] = {
	{ BPF_FUNC_map_lookup_elem, WIRE_AGENT_map_lookup, false, 'v', "mk" },
	{ BPF_FUNC_map_update_elem, WIRE_AGENT_map_update, false, '.', "mkv." },
	{ BPF_FUNC_map_delete_elem, WIRE_AGENT_map_delete, false, '.', "mk" },
	{ BPF_FUNC_probe_read, WIRE_AGENT_probe_read, false, '.', "w.." },
	{ BPF_FUNC_probe_read_kernel, WIRE_AGENT_probe_read, false, '.', "w.." },
	{ BPF_FUNC_probe_read_user, WIRE_AGENT_probe_read, false, '.', "w.." },
	{ BPF_FUNC_copy_from_user, WIRE_AGENT_probe_read, false, '.', "w.." },
	{ BPF_FUNC_probe_read_str, WIRE_AGENT_probe_read_str, false, '.', "w.." },
	{ BPF_FUNC_probe_read_kernel_str, WIRE_AGENT_probe_read_str, false, '.', "w.." },
	{ BPF_FUNC_probe_read_user_str, WIRE_AGENT_probe_read_str, false, '.', "w.." },
	{ BPF_FUNC_probe_write_user, WIRE_AGENT_probe_write, false, '.', ".r." },
	{ BPF_FUNC_ktime_get_ns, WIRE_AGENT_ktime, false, '.', "" },
	{ WIRE_HELPER_THREAD_TIME, WIRE_AGENT_thread_time, false, '.', "" },
	{ BPF_FUNC_get_prandom_u32, WIRE_AGENT_prandom, false, '.', "" },
	{ BPF_FUNC_get_smp_processor_id, WIRE_AGENT_cpu, false, '.', "" },
	{ BPF_FUNC_get_current_pid_tgid, WIRE_AGENT_pid_tgid, false, '.', "" },
	{ BPF_FUNC_get_current_uid_gid, WIRE_AGENT_uid_gid, false, '.', "" },
	{ BPF_FUNC_get_current_comm, WIRE_AGENT_comm, false, '.', "w." },
	{ BPF_FUNC_get_current_task, WIRE_AGENT_current_task, false, '.', "" },
	{ BPF_FUNC_get_current_task_btf, WIRE_AGENT_current_task, false, '.', "" },
	{ BPF_FUNC_get_stack, WIRE_AGENT_get_stack, true, '.', "cw.." },
	{ BPF_FUNC_send_signal, WIRE_AGENT_send_signal, false, '.', "." },
	{ BPF_FUNC_send_signal_thread, WIRE_AGENT_send_signal_thread, false, '.', "." },
	{ BPF_FUNC_ringbuf_reserve, WIRE_AGENT_ring_reserve, false, 'g', "m.." },
	{ BPF_FUNC_ringbuf_submit, WIRE_AGENT_ring_submit, false, '.', "g." },
	{ BPF_FUNC_ringbuf_discard, WIRE_AGENT_ring_discard, false, '.', "g." },
	{ BPF_FUNC_ringbuf_output, WIRE_AGENT_ring_output, false, '.', "ml.." },
	{ BPF_FUNC_ringbuf_query, WIRE_AGENT_ring_query, false, '.', "m." },
	{ BPF_FUNC_task_storage_get, WIRE_AGENT_task_storage_get, false, 'v', "m.V." },
	{ BPF_FUNC_task_storage_delete, WIRE_AGENT_task_storage_delete, false, '.', "m." },
	{ BPF_FUNC_task_pt_regs, WIRE_AGENT_task_pt_regs, true, '.', "." },
	{ BPF_FUNC_strncmp, WIRE_AGENT_strncmp, false, '.', "r.q" },
	{ BPF_FUNC_loop, -1, false, '.', "...." },
	{ BPF_FUNC_get_attach_cookie, -1, false, '.', "c" },
	/* These have no meaning in a traced process. They return the interpreter's values. */
	{ BPF_FUNC_get_func_ip, -1, false, '.', "c" },
	{ BPF_FUNC_get_stackid, -1, false, '.', "c.." },
	{ JIT_QUANTIZE_BUCKET, -1, false, 'b', "." },
	{ JIT_SCRATCH_GET, -1, false, 'v', "M" },
	{ JIT_USTACK, WIRE_AGENT_ustack, true, '.', "mMMWO" },
	{ JIT_LANGUAGE, WIRE_AGENT_language, true, '.', "mMMWO" },
	{ JIT_AGG_TEXT, WIRE_AGENT_agg_text, false, 'v', "M.." },
	{ JIT_AGG_PYTHON, WIRE_AGENT_agg_python, false, 'v', "M..." },
	{ JIT_AGG_RUBY, WIRE_AGENT_agg_ruby, false, 'v', "M..." },
	{ JIT_ID_PYTHON, WIRE_AGENT_id_python, false, '.', "M..." },
	{ JIT_ID_RUBY, WIRE_AGENT_id_ruby, false, '.', "M..." },
	{ JIT_ID_TEXTS, WIRE_AGENT_id_texts, false, '.', "M...." },
	{ JIT_STACK_ID, WIRE_AGENT_stack_id, false, '.', "mMS." },
	{ JIT_VECTOR, -1, false, '.', "" },
	{ JIT_VECTOR + 1, -1, false, '.', "" },
	{ JIT_VECTOR + 2, -1, false, '.', "" },
	{ JIT_VECTOR + 3, -1, false, '.', "" },
	{ JIT_VECTOR + 4, -1, false, '.', "" },
	{ JIT_VECTOR + 5, -1, false, '.', "" },
	{ JIT_VECTOR + 6, -1, false, '.', "" },
	{ JIT_VECTOR + 7, -1, false, '.', "" },
};

uint32_t jit_native(const char *routine)
{
	static const struct {
		const char *name;
		uint32_t id;
	} natives[] = {
		{ "d_quantize_bucket", JIT_QUANTIZE_BUCKET },
		{ "d_scratch_get", JIT_SCRATCH_GET },
		{ "d_ustack", JIT_USTACK },
		{ "d_language", JIT_LANGUAGE },
		{ "d_stack_id", JIT_STACK_ID },
		{ "d_agg_text", JIT_AGG_TEXT },
		{ "d_agg_python", JIT_AGG_PYTHON },
		{ "d_agg_ruby", JIT_AGG_RUBY },
		{ "d_id_python", JIT_ID_PYTHON },
		{ "d_id_ruby", JIT_ID_RUBY },
		{ "d_id_texts", JIT_ID_TEXTS },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(natives); i++)
		if (!strcmp(natives[i].name, routine))
			return natives[i].id;
	if (!strncmp(routine, "d_vector", 8) && routine[8] >= '0' &&
	    routine[8] < '0' + WIRE_VECTORS)
		return JIT_VECTOR + (uint32_t)(routine[8] - '0');
	return 0;
}

const struct jit_helper *jit_helper(uint32_t id)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(helpers); i++)
		if (helpers[i].id == id)
			return &helpers[i];
	return NULL;
}
