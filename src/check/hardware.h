/* The compatibility list: devices, the driver each has, those it could have, firmware that they
 * miss.
 *
 * In: a root directory ("" is this machine's) with /sys and /lib/modules. Out: one row a device.
 * Formats: modules.alias and modules.builtin.modinfo as depmod(8) and the kernel's build write them
 * ("alias PATTERN MODULE", and "MODULE.FIELD=VALUE" with a NUL behind each), pci.ids and usb.ids as
 * pciutils and usbutils have them.
 */
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
 * printed there: rows of what only one has, or what has another driver. */
struct err *hardware_compare(const struct check_table *mine, const char *path,
			     struct check_table *ret);

/* --- modules.c --- */
struct modules {
	char *root, *release; /* /lib/modules/RELEASE; NULL: no such directory */
	char *aliases;        /* modules.alias */
	char *builtin;        /* modules.builtin.modinfo */
	size_t builtin_size;
};
/* Those of the running kernel, or, when root is not "", of the only kernel that is installed
 * there. */
void modules_open(struct modules *m, const char *root);
void modules_close(struct modules *m);
/* Names, with spaces between, of modules with an alias that matches; NULL none. free() it. */
char *modules_for(const struct modules *m, const char *modalias);
/* Names, with spaces between, of firmware that the module asks for and that is not installed; NULL
 * none. free() it. */
char *modules_missing_firmware(const struct modules *m, const char *module);

/* --- ids.c --- */
struct ids {
	char *pci, *usb; /* text of the files; NULL not installed */
};
void ids_open(struct ids *ids, const char *root);
void ids_close(struct ids *ids);
/* "Vendor Device" of a PCI or USB device; NULL not known. free() it. */
char *ids_name(const char *text, unsigned vendor, unsigned device);
/* A PCI class: "VGA compatible controller"; NULL not known. free() it. */
char *ids_class(const char *text, unsigned class, unsigned sub);

#endif
