//@ cmd: -d parse -p 1
self int depth;

ruby$target:::method-entry, ruby$target:::cmethod-entry
{
	printf("%*s%s %s::%s (%s:%d)\n", self->depth * 2, "", "->",
	    copyinstr(arg0), copyinstr(arg1), basename(copyinstr(arg2)), arg3);
	self->depth++;
}
ruby$target:::*-return { self->depth -= self->depth > 0; }
ruby$target:::gc-mark-begin,ruby$target:::gc-sweep-begin { self->gc[probename] = timestamp; }
hotspot$target:::method-entry { @[stringof((char *)copyin(arg1, arg2))] = count(); }
plockstat$target:::mutex-acquire /arg2 > 0/ { @["spun"] = sum(arg2); }
