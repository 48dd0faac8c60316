/* The objects of a JVM that descry's library there has sampled (agent/jvm_samples.c), as descry
 * finds them in the JVM's memory. */
#ifndef DESCRY_WIRE_JVM_SAMPLES_H
#define DESCRY_WIRE_JVM_SAMPLES_H

#include <stdint.h>

enum {
	WIRE_JVM_SAMPLES = 1 << 18, /* entries of the table */
	WIRE_JVM_SAMPLE_BUSY = 1,   /* in place of a reference: a thread changes the entry */
	WIRE_JVM_REFERENCE_TAG = 7, /* bits of a reference that are not its address */
};

/* reference: a weak global reference of JNI, which is the tagged address of a word with the
 * object's address, or 0 when the object has died; 0: the entry is free. serial: of the sample. */
struct wire_jvm_sample {
	uint64_t reference, serial;
};
_Static_assert(sizeof(struct wire_jvm_sample) == 16, "read from outside");

/* The function of the library that has the probe. Its arguments: the table, the entry's number, the
 * serial number, the object's bytes, and the class as JNI has it ("Ljava/lang/String;"). */
#define WIRE_JVM_SAMPLED "descry_sampled"

#endif
