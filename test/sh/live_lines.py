#!/usr/bin/env python3
# Source lines and inlined functions where .debug_aranges is missing (clang writes none) or is not of all units; a FIFO in the
# debug file's place.
# serial
from live import *
from inlined import C

src = TMP + "/lines.c"
open(src, "w").write(C.replace("hidden_worker", "worker"))
OTHER = "int other(void) { return 1; }\n"
open(TMP + "/other.c", "w").write(OTHER)


def look(exe):
    name = os.path.basename(exe)
    check("aranges" not in sh("readelf -SW %s" % exe).stdout or name == "some", name, "has .debug_aranges")
    r = descry("-q", "-x", "srcline", "-n", "profile-499 /pid == $target/ { @[ustack()] = count(); } tick-700ms { exit(0); }", c=exe)
    check(re.search(r"%s`innermost \[inlined\] lines\.c:[56]\n +%s`middle \[inlined\] lines\.c:10\n"
                    r" +%s`worker(\+0x\w+)? lines\.c:15\n +%s`main\+0x\w+ lines\.c:21\n" % ((name,) * 4), r.out),
          name, "-x srcline", r.out[:1500])
    r = descry("profile", "-F", "499", "-t", "0.7", "--folded", "--lines", "--marks", "-c", exe)
    check(re.search(r"main:lines\.c:21;worker:lines\.c:15;middle:lines\.c:10_\[i\];innermost:lines\.c:[56]_\[i\] \d+", r.out),
          name, "profile --lines", r.out[:600])


gcc = ["cc", "-O2", "-g", "-fno-optimize-sibling-calls"]
subprocess.run(gcc + ["-o", TMP + "/whole", src], check=True)
subprocess.run(["objcopy", "--remove-section=.debug_aranges", TMP + "/whole", TMP + "/without"], check=True)
look(TMP + "/without")

# a unit of several ranges, in DWARF 4 too
for version in "4", "5":
    exe = TMP + "/parts" + version
    subprocess.run(gcc + ["-gdwarf-" + version, "-ffunction-sections", "-o", TMP + "/parts.full", src], check=True)
    subprocess.run(["objcopy", "--remove-section=.debug_aranges", TMP + "/parts.full", exe], check=True)
    look(exe)

# .debug_aranges of another unit only
subprocess.run(gcc + ["-c", "-o", TMP + "/lines.o", src], check=True)
subprocess.run(["objcopy", "--remove-section=.debug_aranges", "--remove-section=.rela.debug_aranges", TMP + "/lines.o"], check=True)
subprocess.run(gcc + ["-o", TMP + "/some", TMP + "/lines.o", TMP + "/other.c"], check=True)
look(TMP + "/some")

if shutil.which("clang"):
    subprocess.run(["clang", "-O2", "-g", "-fno-optimize-sibling-calls", "-o", TMP + "/clang", src], check=True)
    look(TMP + "/clang")
else:
    print("no clang here: its programs not tested")

# a FIFO where libdwfl would look for the debug file
subprocess.run(["objcopy", "--strip-debug", TMP + "/whole", TMP + "/fifo"], check=True)
os.mkfifo(TMP + "/fifo.debug")
r = descry("profile", "-F", "499", "-t", "0.7", "--folded", "--lines", "-c", TMP + "/fifo")
check(re.search(r"main;worker \d+", r.out), "a FIFO", r.out[:600])
done()
