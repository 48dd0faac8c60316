/* Lists devices with their drivers and missing firmware. */
#define _GNU_SOURCE
#include "check/hardware.h"

#include "check/small.h"

static const struct check_column columns[HW_COLUMNS] = {
	[HW_BUS] = { "bus", CHECK_COLUMN },
	[HW_ADDRESS] = { "address", CHECK_COLUMN },
	[HW_NAME] = { "name", CHECK_COLUMN },
	[HW_DRIVER] = { "driver", CHECK_COLUMN },
	[HW_POSSIBLE] = { "possible", CHECK_BELOW },
	[HW_FIRMWARE] = { "firmware missing", CHECK_BELOW },
	[HW_MODALIAS] = { "modalias", CHECK_JSON },
};

struct hardware {
	const char *root;
	struct modules modules;
	struct ids ids;
	struct check_table *table;
};

static char *pci_name(const struct hardware *h, const char *dir)
{
	cleanup_free char *vendor = small_read("%s/vendor", dir),
			  *device = small_read("%s/device", dir);
	cleanup_free char *class = small_read("%s/class", dir), *sort = NULL, *name = NULL;
	unsigned c = class ? (unsigned)strtoul(class, NULL, 16) : 0;
	unsigned v = vendor ? (unsigned)strtoul(vendor, NULL, 16) : 0;
	unsigned d = device ? (unsigned)strtoul(device, NULL, 16) : 0;

	sort = ids_class(h->ids.pci, c >> 16 & 0xff, c >> 8 & 0xff);
	name = ids_name(h->ids.pci, v, d);
	if (!name)
		return xasprintf("[%04x:%04x], class %04x", v, d, c >> 8);
	return xasprintf("%s%s%s [%04x:%04x]", sort ? sort : "", sort ? ": " : "", name, v, d);
}

/* Returns the name of a USB device. For an interface, uses the device above, which has the
 * numbers. */
static char *usb_name(const struct hardware *h, const char *dir)
{
	const char *up = "";
	cleanup_free char *vendor = small_read("%s/idVendor", dir), *product = NULL, *text = NULL,
			  *name = NULL;
	unsigned v, p;

	if (!vendor) {
		up = "/..";
		vendor = small_read("%s/../idVendor", dir);
	}
	product = small_read("%s%s/idProduct", dir, up);
	text = small_read("%s%s/product", dir, up);
	v = vendor ? (unsigned)strtoul(vendor, NULL, 16) : 0;
	p = product ? (unsigned)strtoul(product, NULL, 16) : 0;
	name = ids_name(h->ids.usb, v, p);
	return name || text ? xasprintf("%s [%04x:%04x]", name ? name : text, v, p)
			    : xasprintf("[%04x:%04x]", v, p);
}

static char *hardware_name_of(const struct hardware *h, const char *bus, const char *dir,
			      const char *modalias)
{
	if (!strcmp(bus, "pci"))
		return pci_name(h, dir);
	if (!strcmp(bus, "usb"))
		return usb_name(h, dir);
	return xstrdup(modalias);
}

/* Returns the missing firmware of the device's driver, or, if it has none, of its possible
 * drivers. */
static char *missing(const struct hardware *h, const char *module, const char *possible)
{
	cleanup_free char *list = module ? xstrdup(module) : possible ? xstrdup(possible) : NULL;
	char *save, *all = NULL;

	for (char *m = list ? strtok_r(list, " ", &save) : NULL; m;
	     m = strtok_r(NULL, " ", &save)) {
		cleanup_free char *more = modules_missing_firmware(&h->modules, m);
		char *longer = more ? xasprintf("%s%s%s", all ? all : "", all ? " " : "", more)
				    : NULL;

		if (longer) {
			free(all);
			all = longer;
		}
	}
	return all;
}

static void add_device(struct hardware *h, const char *bus, const char *address)
{
	cleanup_free char *dir = xasprintf("%s/sys/bus/%s/devices/%s", h->root, bus, address);
	cleanup_free char *modalias = small_read("%s/modalias", dir);
	cleanup_free char *driver = small_link("%s/driver", dir);
	cleanup_free char *module = small_link("%s/driver/module", dir);
	cleanup_free char *possible = NULL, *name = NULL, *firmware = NULL;

	/* A device without a modalias needs no driver: the hub's ports, for example. */
	if (!modalias || !*modalias)
		return;
	possible = modules_for(&h->modules, modalias);
	/* Half of the firmware's tables are names for which no kernel has a driver. */
	if (!strcmp(bus, "acpi") || (!strcmp(bus, "platform") && !driver && !possible))
		return;
	name = hardware_name_of(h, bus, dir, modalias);
	firmware = missing(h, module ? module : driver, possible);
	check_row(h->table, (const char *const[HW_COLUMNS]){
				    [HW_BUS] = bus,
				    [HW_ADDRESS] = address,
				    [HW_NAME] = name,
				    [HW_DRIVER] = driver,
				    [HW_POSSIBLE] = possible,
				    [HW_FIRMWARE] = firmware,
				    [HW_MODALIAS] = modalias,
			    });
}

void hardware_list(const char *root, struct check_table *ret)
{
	struct hardware h = { .root = root, .table = ret };
	cleanup_free char *buses = xasprintf("%s/sys/bus", root);
	char **bus, **device;
	unsigned nbus = small_names(buses, &bus), n;

	check_table_init(ret, "hardware", "Devices and their drivers", columns, HW_COLUMNS);
	modules_open(&h.modules, root);
	ids_open(&h.ids, root);
	for (unsigned b = 0; b < nbus; b++) {
		cleanup_free char *devices = xasprintf("%s/%s/devices", buses, bus[b]);

		n = small_names(devices, &device);
		for (unsigned i = 0; i < n; i++)
			add_device(&h, bus[b], device[i]);
		small_names_free(device, n);
	}
	if (!nbus)
		check_note(ret, "%s/sys is not mounted: no device is seen", root);
	if (!h.modules.aliases && !h.modules.builtin)
		check_note(
			ret,
			"there are no modules of this kernel in %s/lib/modules, so possible drivers and their firmware are not known",
			root);
	if (!h.ids.pci)
		check_note(ret, "pci.ids is not installed: PCI devices have numbers and no names");
	if (!h.ids.usb)
		check_note(
			ret,
			"usb.ids is not installed: USB devices have the names they give themselves");
	small_names_free(bus, nbus);
	ids_close(&h.ids);
	modules_close(&h.modules);
}
