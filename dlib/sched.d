/* CPUs: curcpu, and the third argument of sched:::enqueue and dequeue. Linux has no processor sets. */
#pragma D depends_on library types.d

typedef struct cpuinfo {
	processorid_t cpu_id;
	psetid_t cpu_pset;
	chipid_t cpu_chip;	/* socket */
	lgrp_id_t cpu_lgrp;	/* memory node */
} cpuinfo_t;

translator cpuinfo_t < int C > {
	cpu_id = C;
	cpu_pset = 0;
	cpu_chip = __cpu_chip(C);
	cpu_lgrp = __cpu_node(C);
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> ((int)cpu);
inline psetid_t pset = 0;
inline chipid_t chip = __cpu_chip((int)cpu);
inline lgrp_id_t lgrp = __cpu_node((int)cpu);
