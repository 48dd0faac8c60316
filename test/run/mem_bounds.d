//@ engine: interp,kernel,inproc
//@ cmd: -q
/* alloca() and copyin() have bounds: a clause cannot read or write bytes before or behind their memory, or
 * through a global those of an earlier clause. */
char *kept;

BEGIN { p = (char *)alloca(16); p[0] = 'a'; p[15] = 'z'; printf("%c%c\n", p[0], p[15]); }
BEGIN { p = (char *)alloca(16); trace(p[-1]); }
BEGIN { p = (char *)alloca(16); trace(p[16]); }
BEGIN { p = (char *)alloca(16); p[16] = 1; }
BEGIN { w = (int *)alloca(10); trace(w[2]); }
BEGIN { p = (char *)alloca(16); bcopy("0123456789", &p[8], 9); }
BEGIN { d = alloca(20); s = alloca(10); bcopy(s, d, 11); }
BEGIN { p = (char *)alloca(16); copyinto(curthread->mm->env_start, 17, p); }
BEGIN { kept = (char *)alloca(8); kept[0] = 'k'; }
BEGIN { trace(kept[0]); }
BEGIN
{
	p = (char *)alloca(8); d = alloca(8);
	bcopy("abcdefgh", p, 8); n = 1;
	bcopy(p + n++, (char *)d + n++, n++);
	printf("%s\n", stringof((char *)d + 2));
}
BEGIN { p = 0; trace(((struct task_struct *)p)->pid); }
BEGIN { exit(0); }
ERROR { printf("fault %d\n", arg4); }
