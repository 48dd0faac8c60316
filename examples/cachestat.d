#!/usr/bin/env -S descry -s
/* Prints every second the pages that the page cache has read and written, and file reads for each page read.
 *
 *	                             IN        OUT      READS
 *	2026 Nov 23 06:11:45       3138        892       7497
 *	2026 Nov 23 06:11:46      24415      10937      16119
 *	2026 Nov 23 06:11:47      35976       3596      11591
 */
#pragma D option quiet

BEGIN
{
	in = out = reads = line = 0;
}

sdt:filemap::mm_filemap_add_to_page_cache
{
	in++;
}

sdt:filemap::mm_filemap_delete_from_page_cache
{
	out++;
}

syscall::read:return,
syscall::pread64:return
/(int)arg0 > 0/
{
	reads++;
}

tick-1s
/line++ % 20 == 0/
{
	printf("%20s %10s %10s %10s\n", "", "IN", "OUT", "READS");
}

tick-1s
{
	printf("%20Y %10d %10d %10d\n", walltimestamp, in, out, reads);
	in = 0;
	out = 0;
	reads = 0;
}
