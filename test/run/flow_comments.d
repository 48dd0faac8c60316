//@ engine: interp,kernel,inproc
#!/usr/sbin/dtrace -qs
// a line comment with "quotes" and /* no comment
/* a block comment with // and "quotes" */
BEGIN // after a probe
{
	printf("a // b /* c */\n"); // after a statement
	printf("%d\n", 6 / 2 /* between */ / 1); /* after */
	exit(0);
}
//@ cmd: -q
