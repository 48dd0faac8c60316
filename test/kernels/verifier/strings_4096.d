/* Every routine on text, each on a long built-in and in a condition: strsize=4096; what an older verifier makes of them. */
//@ c: /bin/busybox echo verifier
//@ engine: kernel
//@ cmd: -q -x strsize=4096
//@ sort
syscall::write:entry
/pid == $target/
{
	printf("strstr %s\n", strstr(curpsinfo->pr_psargs, "echo") != NULL ? "yes" : "no");
	printf("strstr cwd %s\n", strstr(cwd, "nothing") != NULL ? "yes" : "no");
	printf("strstr both %s\n", strstr(strjoin(cwd, curpsinfo->pr_psargs), "echo ver") != NULL && strlen(cwd) > 0 ? execname : cwd);
}

syscall::write:entry
/pid == $target && strstr(curpsinfo->pr_psargs, "verif") != NULL/
{
	printf("predicate %s\n", strstr(copyinstr(arg1), "if") != NULL ? strstr(copyinstr(arg1), "if") : "no");
}

syscall::write:entry
/pid == $target/
{
	printf("index %d %d\n", index(curpsinfo->pr_psargs, "echo"), rindex(curpsinfo->pr_psargs, "e"));
	printf("strchr %s %s\n", strchr(curpsinfo->pr_psargs, 'e'), strrchr(curpsinfo->pr_psargs, 'e') != NULL ? "yes" : "no");
}

syscall::write:entry
/pid == $target/
{
	printf("strtok %s", strtok(curpsinfo->pr_psargs, " "));
	printf(" %s\n", strtok(NULL, " ") != NULL ? "more" : "end");
	printf("substr %s\n", substr(curpsinfo->pr_psargs, strlen(execname) + 10, 4));
}

syscall::write:entry
/pid == $target/
{
	printf("names %s %s\n", basename(curpsinfo->pr_psargs), dirname(curpsinfo->pr_psargs));
	printf("clean %s\n", cleanpath(strjoin("/a/../b/./", basename(dirname(curpsinfo->pr_psargs)))));
	printf("case %s\n", strstr(toupper(curpsinfo->pr_psargs), "ECHO") != NULL ? tolower("ABC") : "no");
}

syscall::write:entry
/pid == $target/
{
	printf("json %s %d\n", json("{\"a\": [1, \"two\"]}", "a[1]"), strtoll("-42"));
	printf("compare %d\n", curpsinfo->pr_psargs > "/bin" && strstr(probefunc, "rit") != NULL);
}
