//@ cmd: -d parse
#pragma D option quiet

inline int SLOW_US = 10000;

struct request {
	uint64_t begin;
	int uid;
	string who;
};

struct request pending[dev_t, uint64_t];
uint64_t total;

io:::start
{
	pending[args[0]->b_edev, args[0]->b_blkno].begin = timestamp;
	pending[args[0]->b_edev, args[0]->b_blkno].who = execname;
}

io:::done
/pending[args[0]->b_edev, args[0]->b_blkno].begin/
{
	this->us = (timestamp - pending[args[0]->b_edev, args[0]->b_blkno].begin) / 1000;
	total += this->us;
	@bytes[args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W"] = sum(args[0]->b_bcount);
	@times[args[1]->dev_statname] = lquantize(this->us, 0, SLOW_US, SLOW_US / 20);
}

io:::done
/this->us > SLOW_US && args[2]->fi_pathname != "<none>"/
{
	printf("slow: %d us %s\n", this->us, args[2]->fi_pathname);
}
