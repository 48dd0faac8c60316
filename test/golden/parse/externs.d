//@ cmd: -d parse
BEGIN
{
	trace(`jiffies);
	trace(vmlinux`jiffies);
	trace(`init_task.pid);
	trace(`mod`sym);
	trace(&`init_task);
	trace(kvm`stats[3]->total);
	`x++;
}
