/* The machine's memory, by /proc/meminfo.
 *
 * In: words of the file, such as "MemFree:". Out: bytes.
 */
#ifndef DESCRY_BASE_MEMINFO_H
#define DESCRY_BASE_MEMINFO_H

#include <stdbool.h>
#include <stdint.h>

/* Reads n words at once; 0 for one that the file does not have. Returns false when the file cannot
 * be read. */
bool meminfo_read(const char *const *words, uint32_t n, uint64_t *ret);
/* Returns how much more memory this process can take, which its control groups may limit. 0: not
 * known. */
uint64_t meminfo_available(void);

#endif
