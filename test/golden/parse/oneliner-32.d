//@ cmd: -d parse -p 1
python$target:::function-entry { printf("%s:%s:%d", copyinstr(arg0), copyinstr(arg1), arg2); }
