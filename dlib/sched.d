/* CPUs: curcpu, and the third argument of sched:::enqueue and dequeue. Linux has no processor sets. */
#pragma D depends_on library types.d

/* as in <sys/processor.h> of Solaris */
typedef struct processor_info {
	int pi_state;		/* P_* */
	string pi_processor_type;
	string pi_fputypes;
	int pi_clock;		/* MHz; 0: not known */
} processor_info_t;

inline int P_OFFLINE = 1;
inline int P_ONLINE = 2;

/* A CPU in a probe's arguments is always online. */
translator processor_info_t < int C > {
	pi_state = P_ONLINE;
	pi_processor_type = __cpu_type;
	pi_fputypes = __cpu_type == "x86_64" ? "i387 compatible" : "";
	pi_clock = __cpu_mhz(C);
};

typedef struct cpuinfo {
	processorid_t cpu_id;
	psetid_t cpu_pset;
	chipid_t cpu_chip;	/* socket */
	lgrp_id_t cpu_lgrp;	/* memory node */
	processor_info_t cpu_info;
} cpuinfo_t;

translator cpuinfo_t < int C > {
	cpu_id = C;
	cpu_pset = 0;
	cpu_chip = __cpu_chip(C);
	cpu_lgrp = __cpu_node(C);
	cpu_info = xlate <processor_info_t> (C);
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> ((int)cpu);
inline psetid_t pset = 0;
inline chipid_t chip = __cpu_chip((int)cpu);
inline lgrp_id_t lgrp = __cpu_node((int)cpu);
