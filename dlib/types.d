/* Names of types that D scripts expect and Linux lacks. */
typedef long long hrtime_t;
typedef char *caddr_t;
typedef id_t processorid_t;
typedef id_t psetid_t;
typedef id_t chipid_t;
typedef id_t lgrp_id_t;
typedef id_t taskid_t;
typedef id_t projid_t;
typedef id_t poolid_t;
typedef id_t zoneid_t;
typedef id_t ctid_t;
typedef int pri_t;
typedef uint32_t major_t;
typedef uint32_t minor_t;

typedef struct timestruc {
	int64_t tv_sec;
	int64_t tv_nsec;
} timestruc_t;
