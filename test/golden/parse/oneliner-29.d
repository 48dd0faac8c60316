//@ cmd: -d parse -p 1
pid$target::getenv:entry { @[copyinstr(arg0)] = count(); }
