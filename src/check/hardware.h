/* The compatibility list: devices, their drivers, their possible drivers, and their missing
 * firmware.
 *
 * In: a root directory ("" is this machine's) with /sys and /lib/modules. Out: a row for each
 * device. Formats: modules.alias and modules.builtin.modinfo of depmod(8) and the kernel's build
 * ("alias PATTERN MODULE", and "MODULE.FIELD=VALUE" with a NUL behind each), pci.ids and usb.ids of
 * pciutils and usbutils. */
#ifndef DESCRY_CHECK_HARDWARE_H
#define DESCRY_CHECK_HARDWARE_H

#include "base/err.h"
#include "base/hash.h"
#include "check/table.h"

/* Columns of the table of hardware_list(). */
enum hardware_column {
	HW_BUS,
	HW_ADDRESS,
	HW_NAME,
	HW_DRIVER,
	HW_POSSIBLE,
	HW_FIRMWARE,
	HW_MODALIAS,
	HW_COLUMNS
};

void hardware_list(const char *root, struct check_table *ret);
/* Compares this list with another machine's, the JSON text that `descry check --hardware --json`
 * printed there. Returns rows of devices that only one machine has or that have different
 * drivers. */
struct err *hardware_compare(const struct check_table *mine, const char *path,
			     struct check_table *ret);

/* --- modules.c --- */
struct modules {
	char *root, *release; /* /lib/modules/RELEASE; NULL: no such directory */
	char *aliases;        /* modules.alias */
	char *builtin;        /* modules.builtin.modinfo */
	size_t builtin_size;
};
/* Opens the modules of the running kernel, or, when root is not "", of the only kernel installed
 * there. */
void modules_open(struct modules *m, const char *root);
void modules_close(struct modules *m);
/* Returns the names, separated by spaces, of modules with an alias that matches, or NULL. The
 * caller frees them. */
char *modules_for(const struct modules *m, const char *modalias);
/* Returns the names, separated by spaces, of firmware that the module needs and that is not
 * installed, or NULL. The caller frees them. */
char *modules_missing_firmware(const struct modules *m, const char *module);

/* --- ids.c --- */
struct ids {
	char *pci, *usb; /* text of the files; NULL not installed */
};
void ids_open(struct ids *ids, const char *root);
void ids_close(struct ids *ids);
/* Returns "Vendor Device" of a PCI or USB device, or NULL when it is not known. The caller frees
 * it. */
char *ids_name(const char *text, unsigned vendor, unsigned device);
/* Returns a PCI class: "VGA compatible controller", or NULL when it is not known. The caller frees
 * it. */
char *ids_class(const char *text, unsigned class, unsigned sub);

#endif
