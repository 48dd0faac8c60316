/* What the kernel itself calls its addresses: a program in the kernel prints them with "%pS" (Linux
 * 5.14).
 *
 * Made at the first question, 0.3 ms; each takes ~1 us. Always true: where the kernel refuses, it
 * has been asked once.
 */
#ifndef DESCRY_LOAD_KERNEL_NAMES_H
#define DESCRY_LOAD_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;

struct kernel_names *kernel_names_new(void);
void kernel_names_free(struct kernel_names *n);
/* "vfs_read+0x10/0xd0", "ext4_iget+0x0/0x5a0 [ext4]", "0xffff888003c0ffee" where it has no name;
 * valid until the next call. NULL: this kernel does not say. arg: a struct kernel_names. */
const char *kernel_names_ask(void *arg, uint64_t addr);

#endif
