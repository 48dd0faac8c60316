/* Replays a fuzz corpus as an ordinary test: every file given, or every file of a folder given,
 * once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	cleanup_free char *text = NULL;
	cleanup_err struct err *e = NULL;
	size_t len;

	e = io_read_file(path, &text, &len);
	if (e) {
		fprintf(stderr, "%s\n", e->text);
		return 1;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *d;
	int bad = 0, n = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		if (!dir) {
			bad |= replay(argv[i]);
			n++;
			continue;
		}
		while ((d = readdir(dir))) {
			cleanup_free char *path = xasprintf("%s/%s", argv[i], d->d_name);

			if (d->d_name[0] == '.')
				continue;
			bad |= replay(path);
			n++;
		}
		closedir(dir);
	}
	printf("%d inputs\n", n);
	return bad || !n;
}
