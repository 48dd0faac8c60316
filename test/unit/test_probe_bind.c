/* The definitions of providers and dlib/, bound against the running kernel: each member of each
 * translator, each argument of each probe, each constant. */
#include "unit.h"

#include <unistd.h>

#include "base/hash.h"
#include "compile/bind/bind.h"

/* One program, from text to bound. */
static void assert_binds(const char *text)
{
	struct type_graph *types = type_graph_new();
	struct symbols *symbols = symbols_new();
	struct macro_args macros = { .target = -1 };
	struct diag_style style = { .progname = "test" };
	struct hash typedefs = { 0 };
	struct options options;
	struct probe_set ps;
	struct arena arena;
	struct diags diags;
	struct parse_cx parse;
	struct bind_cx bind;
	struct node *top;

	type_use_kernel(types, NULL);
	probe_set_init(&ps, types, symbols);
	arena_init(&arena);
	diags_init(&diags);
	options_init(&options);
	parse = (struct parse_cx){ .arena = &arena,
				   .diags = &diags,
				   .macros = &macros,
				   .is_type = bind_is_type,
				   .is_type_arg = &bind,
				   .typedefs = &typedefs };
	bind = (struct bind_cx){ .arena = &arena,
				 .diags = &diags,
				 .types = types,
				 .probes = &ps,
				 .options = &options,
				 .macros = &macros,
				 .parse = &parse };
	bind_init(&bind);
	source_add(&diags, SOURCE_FILE, text, text, strlen(text));
	top = parse_source(&parse, diags.nsources - 1, PDESC_NAME);
	bind_add(&bind, top);
	bind_finish(&bind);
	if (diags.errors) {
		diags_print(&diags, &style, stdout);
		fail_msg("does not bind: %s", text);
	}
	bind_fini(&bind);
	hash_fini(&typedefs);
	options_fini(&options);
	diags_fini(&diags);
	arena_fini(&arena);
	probe_set_fini(&ps);
	symbols_free(symbols);
	type_graph_free(types);
}

static void need_btf(void)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
}

/* trace(<prefix>member) for each of the words in members. */
static void assert_members(const char *probe, const char *prefix, const char *members)
{
	cleanup_free char *words = xstrdup(members);
	char *save = NULL;

	for (char *m = strtok_r(words, " ", &save); m; m = strtok_r(NULL, " ", &save)) {
		cleanup_free char *text = xasprintf("%s { trace(%s%s); }", probe, prefix, m);

		assert_binds(text);
	}
}

#define LWPSINFO \
	"pr_flag pr_lwpid pr_addr pr_wchan pr_stype pr_state pr_sname pr_syscall pr_pri pr_clname pr_name " \
	"pr_onpro pr_bindpro pr_bindpset pr_lgrp"
#define PSINFO \
	"pr_flag pr_nlwp pr_nzomb pr_pid pr_ppid pr_pgid pr_sid pr_uid pr_euid pr_gid pr_egid pr_addr " \
	"pr_ttydev pr_fname pr_psargs pr_wstat pr_argc pr_argv pr_envp pr_dmodel pr_taskid pr_projid pr_poolid " \
	"pr_zoneid pr_contract"
#define CPUINFO "cpu_id cpu_pset cpu_chip cpu_lgrp"
#define BUFINFO "b_flags b_bcount b_addr b_lblkno b_blkno b_resid b_bufsize b_iodone b_edev"
#define DEVINFO "dev_major dev_minor dev_instance dev_name dev_statname dev_pathname"
#define FILEINFO "fi_name fi_dirname fi_pathname fi_offset fi_fs fi_mount fi_oflags"

static void test_psinfo(void **state)
{
	need_btf();
	assert_members("BEGIN", "curpsinfo->", PSINFO);
	assert_members("BEGIN", "curlwpsinfo->", LWPSINFO);
	assert_members("BEGIN", "curcpu->", CPUINFO);
	assert_members("BEGIN", "", "cwd root pset chip lgrp");
	assert_members("sched:::off-cpu", "args[0]->", "pr_lwpid pr_state pr_sname");
	assert_members("sched:::off-cpu", "args[1]->", "pr_pid pr_fname pr_psargs");
	assert_members("sched:::enqueue", "args[2]->", CPUINFO);
	assert_members("proc:::create", "args[0]->", "pr_pid pr_psargs");
}

static void test_files(void **state)
{
	need_btf();
	assert_members("BEGIN", "fds[1].", FILEINFO);
	assert_members("io:::start", "args[0]->", BUFINFO);
	assert_members("io:::done", "args[1]->", DEVINFO);
	assert_members("io:::start", "args[2]->", FILEINFO);
	assert_binds("sdt:::block_bio_queue { trace((xlate <bufinfo_t *> (args[0]))->b_error); "
		     "trace((xlate <devinfo_t *> (args[0]))->dev_statname); "
		     "trace((xlate <fileinfo_t *> (args[0]))->fi_name); }");
}

#define IPINFO "ip_ver ip_plength ip_saddr ip_daddr"
#define TCPSINFO \
	"tcps_addr tcps_local tcps_lport tcps_rport tcps_laddr tcps_raddr tcps_state tcps_iss tcps_suna tcps_snxt " \
	"tcps_rack tcps_rnxt tcps_swnd tcps_snd_ws tcps_rwnd tcps_rcv_ws tcps_cwnd tcps_cwnd_ssthresh tcps_rto " \
	"tcps_mss tcps_retransmit tcps_rtt tcps_rtt_sd tcps_irs"
#define TCPINFO \
	"tcp_sport tcp_dport tcp_seq tcp_ack tcp_offset tcp_flags tcp_window tcp_checksum tcp_urgent tcp_hdr"
#define IPV4INFO \
	"ipv4_ver ipv4_ihl ipv4_tos ipv4_length ipv4_ident ipv4_flags ipv4_offset ipv4_ttl ipv4_protocol " \
	"ipv4_protostr ipv4_checksum ipv4_src ipv4_dst ipv4_saddr ipv4_daddr ipv4_hdr"
#define IPV6INFO \
	"ipv6_ver ipv6_tclass ipv6_flow ipv6_plen ipv6_nexthdr ipv6_nextstr ipv6_hlim ipv6_src ipv6_dst " \
	"ipv6_saddr ipv6_daddr ipv6_hdr"

static void test_net(void **state)
{
	static const char *const tcp[] = { "tcp:::connect-request", "tcp:::connect-established",
					   "tcp:::send", "tcp:::receive" };

	need_btf();
	for (size_t i = 0; i < ARRAY_SIZE(tcp); i++) {
		assert_members(tcp[i], "args[0]->", "pkt_addr");
		assert_members(tcp[i], "args[1]->", "cs_addr cs_cid");
		assert_members(tcp[i], "args[2]->", IPINFO);
		assert_members(tcp[i], "args[3]->", TCPSINFO);
		assert_members(tcp[i], "args[4]->", TCPINFO);
	}
	assert_members("tcp:::state-change", "args[3]->", TCPSINFO);
	assert_members("tcp:::state-change", "args[5]->", "tcps_state");
	assert_members("ip:::send", "args[2]->", IPINFO);
	assert_members("ip:::send", "args[3]->", "if_name if_local if_ipstack if_addr");
	assert_members("ip:::send", "args[4]->", IPV4INFO);
	assert_members("ip:::receive", "args[2]->", IPINFO);
	assert_members("ip:::receive", "args[5]->", IPV6INFO);
	assert_members("udp:::send", "args[3]->",
		       "udps_addr udps_lport udps_rport udps_laddr udps_raddr");
	assert_members("udp:::receive", "args[3]->",
		       "udps_addr udps_lport udps_rport udps_laddr udps_raddr");
	assert_members("udp:::receive", "args[4]->",
		       "udp_sport udp_dport udp_length udp_checksum udp_hdr");
	assert_binds(
		"BEGIN { trace(tcp_state_string[TCP_STATE_LISTEN]); trace(TH_SYN + IPPROTO_TCP + IPH_DF); }");
}

/* The provider's own clause keeps the start of a wait. */
static void test_lockstat(void **state)
{
	need_btf();
	assert_binds(
		"lockstat:::adaptive-block { @[stack()] = quantize(arg1); } BEGIN { exit(0); }");
	assert_binds(
		"lockstat:::rw-block,lockstat:::rw-spin { trace(arg0); trace(arg1); trace(arg2); }");
}

static void test_constants(void **state)
{
	assert_binds(
		"BEGIN { trace(ENOENT + SIGKILL + O_CREAT + AT_FDCWD + R_RIP + B_READ + CLD_KILLED); "
		"trace(DTRACEFLT_BADADDR + SZOMB + PR_MODEL_LP64); }");
}

static void bind_args(void *arg, struct probe *p)
{
	struct probe_set *ps = arg;
	struct probe_args a;

	if (p->unavailable)
		return;
	assert_null(probe_args(ps, p, &a));
	for (uint32_t i = 0; i < a.ntyped; i++) {
		cleanup_free char *text = NULL;

		text = a.typed[i].xlate
			       ? xasprintf("%s:::%s { trace(arg%u); }", p->prov, p->name, i)
			       : xasprintf("%s:::%s { trace(arg%u); trace(args[%u]); }", p->prov,
					   p->name, i, i);
		assert_binds(text);
	}
	if (!a.ntyped) {
		cleanup_free char *text =
			xasprintf("%s:::%s { trace(execname); }", p->prov, p->name);

		assert_binds(text);
	}
}

static void test_every_argument(void **state)
{
	static const char *const names[] = { "sched", "proc",    "io",      "vminfo",
					     "ip",    "sysinfo", "fsinfo",  "tcp",
					     "udp",   "mib",     "lockstat" };
	struct type_graph *types = type_graph_new();
	struct symbols *symbols = symbols_new();
	struct probe_set ps;

	need_btf();
	type_use_kernel(types, NULL);
	probe_set_init(&ps, types, symbols);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct probe_desc pd = { names[i], "", "", "" };
		uint32_t n;

		assert_null(probe_match(&ps, &pd, bind_args, &ps, &n));
	}
	probe_set_fini(&ps);
	symbols_free(symbols);
	type_graph_free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psinfo),    cmocka_unit_test(test_files),
		cmocka_unit_test(test_net),       cmocka_unit_test(test_lockstat),
		cmocka_unit_test(test_constants), cmocka_unit_test(test_every_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
