/* The agent's blob (agent/), as it is embedded in descry. */
#ifndef DESCRY_LOAD_INPROC_AGENT_BLOB_H
#define DESCRY_LOAD_INPROC_AGENT_BLOB_H

#include "wire/inproc.h"

extern const uint8_t descry_agent[], descry_agent_end[];

static inline const struct wire_agent_head *agent_blob(void)
{
	return (const struct wire_agent_head *)(const void *)descry_agent;
}
static inline uint64_t agent_blob_size(void)
{
	return (uint64_t)(descry_agent_end - descry_agent);
}

#endif
