/* The kernel's own names of its addresses. A program in the kernel prints them with "%pS" (Linux
 * 5.14).
 *
 * The first question takes 0.3 ms to make the program; each question takes ~1 us. Always true: when
 * the kernel refuses, no second attempt is made.
 */
#ifndef DESCRY_LOAD_KERNEL_NAMES_H
#define DESCRY_LOAD_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;

struct kernel_names *kernel_names_new(void);
void kernel_names_free(struct kernel_names *n);
/* Returns "vfs_read+0x10/0xd0", "ext4_iget+0x0/0x5a0 [ext4]", or "0xffff888003c0ffee" for an
 * address without a name; valid until the next call. NULL: this kernel cannot answer. arg: a struct
 * kernel_names. */
const char *kernel_names_ask(void *arg, uint64_t addr);

#endif
