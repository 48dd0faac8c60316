//@ cmd: -d parse -p 1
ruby$target:::method-entry { @[copyinstr(arg0), copyinstr(arg1)] = count(); }
