/* Samples of the objects that a JVM makes, each kept by a weak reference, so that descry sees in
 * the JVM's memory which of them still live, and where the collector has moved them.
 *
 * In: the mean number of bytes between two samples. Out: a call of descry_sampled() in the thread
 * that makes the object, and the table of wire/jvm_samples.h.
 */
#ifndef DESCRY_AGENT_JVM_SAMPLING_H
#define DESCRY_AGENT_JVM_SAMPLING_H

#include "agent/jvm_table.h"

/* Returns a result of wire/jvm_text.h. */
int jvm_samples_start(jvm_handle jni, uint64_t interval);
/* Gives all references back. Waits for threads that add one. */
void jvm_samples_stop(jvm_handle jni);

#endif
