#!/usr/bin/env -S descry -s
/* Prints the pattern of disk requests every second: the share that begins where another ended, sizes, reads, writes.
 * usage: descry -s iopattern.d
 *
 *	DEVICE         %RAN   %SEQ   COUNT        MIN        MAX        AVG    KB READ KB WRITTEN
 *	vda              98      1    1187       4096     876544      14254       5680      10844
 */
#pragma D option quiet

int64_t end[dev_t];

BEGIN
{
	printf("%-12s %6s %6s %7s %10s %10s %10s %10s %10s\n", "DEVICE", "%RAN", "%SEQ", "COUNT", "MIN", "MAX", "AVG",
	    "KB READ", "KB WRITTEN");
}

io:::done
{
	this->dev = args[0]->b_edev;
	this->sequential = end[this->dev] == args[0]->b_blkno;
	@random[args[1]->dev_statname] = avg(this->sequential ? 0 : 100);
	@sequential[args[1]->dev_statname] = avg(this->sequential ? 100 : 0);
	@n[args[1]->dev_statname] = count();
	@least[args[1]->dev_statname] = min(args[0]->b_bcount);
	@most[args[1]->dev_statname] = max(args[0]->b_bcount);
	@mean[args[1]->dev_statname] = avg(args[0]->b_bcount);
	@read[args[1]->dev_statname] = sum(args[0]->b_flags & B_READ ? args[0]->b_bcount : 0);
	@written[args[1]->dev_statname] = sum(args[0]->b_flags & B_READ ? 0 : args[0]->b_bcount);
	end[this->dev] = args[0]->b_blkno + args[0]->b_bcount / 512;
}

tick-1s
{
	normalize(@read, 1024);
	normalize(@written, 1024);
	printa("%-12s %@6d %@6d %@7d %@10d %@10d %@10d %@10d %@10d\n", @random, @sequential, @n, @least, @most, @mean,
	    @read, @written);
	trunc(@random);
	trunc(@sequential);
	trunc(@n);
	trunc(@least);
	trunc(@most);
	trunc(@mean);
	trunc(@read);
	trunc(@written);
}
