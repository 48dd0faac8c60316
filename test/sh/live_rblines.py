#!/usr/bin/env python3
# ruby$target:::line fires for each line that begins, as often as a TracePoint says in the same program, with its file and line: blocks, loops,
# code that is evaluated or loaded later, threads, fibers, exceptions, Ruby's own libraries, with YJIT, beside a TracePoint of the program's
# own. The flag that descry sets in Ruby is reset at the end, also when descry was killed, and stays as it is when the program
# has enabled events itself. A Ruby that runs already is refused, unless it has had such a TracePoint. RUBIES: other interpreters than Debian's.
# serial
from ruby_lines import *

RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
WAITS = r"""
def quiet(x) x + 1 end
$stdout.sync = true
if ARGV[0] == "before"
  t = TracePoint.new(:line) { }
  t.enable
  t.disable
end
puts "ready"
$stdin.gets
if ARGV[0] == "events"
  calls = 0
  t = TracePoint.new(:call) { calls += 1 }
  t.enable
  puts "enabled"
  $stdin.gets
  3.times { quiet(1) }
  t.disable
  puts "calls #{calls}"
else
  3.times do
    quiet(1)
  end
end
puts "done"
$stdin.gets
"""


def flag(pid):
    """The byte of Ruby's flags that has the event of lines."""
    with open("/proc/%d/maps" % pid) as f:
        line = next(m for m in f if re.search(r" 00000000 .*libruby-\d", m))
    path = line.split()[-1]
    symbol = re.search(r"^(\w+) \w ruby_vm_event_enabled_global_flags", sh("nm -D " + path).stdout, re.M)
    with open("/proc/%d/mem" % pid, "rb") as f:
        f.seek(int(line.split("-")[0], 16) + int(symbol.group(1), 16))
        return f.read(1)[0]


for ruby in RUBIES:
    app, waits = TMP + "/app.rb", TMP + "/waits.rb"
    with open(app, "w") as f:
        f.write(PROGRAM)
    with open(waits, "w") as f:
        f.write(WAITS)
    counted(ruby, app, "plain")
    if "+YJIT" in sh(ruby + " --yjit --version").stdout:
        counted(ruby, app, "plain", "--yjit", "--yjit-call-threshold=2")
    r = counted(ruby, app, "own")
    alone = subprocess.run([ruby, app, "own", TMP + "/late.rb"], capture_output=True, text=True, check=True).stderr
    check(re.search(r"own \d+", r.err).group() == alone.strip(), "the program's TracePoint", r.err, alone)
    native = subprocess.run([ruby, waits, "events"], input="\n\n\n", capture_output=True, text=True, check=True).stdout

    with subprocess.Popen([ruby, waits, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as p:
        check(p.stdout.readline() == "ready\n", "is ready")
        r = descry("-n", "ruby$target:::line { @ = count(); }", "-p", str(p.pid), rc=1)
        check("descry sets the flag in a Ruby that it starts (-c)" in r.err and flag(p.pid) == 0, "a Ruby that runs is refused", r)
        p.communicate("\n\n")
    with subprocess.Popen([ruby, waits, "before"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as p:
        check(p.stdout.readline() == "ready\n", "is ready")
        before = flag(p.pid)
        check(before & 1, "the TracePoint leaves the flag", before)
        s = tracing("--json", "-x", "engine=inproc", "-p", str(p.pid), "-n", "ruby$target:::line { @[copyinstr(arg0), arg1] = count(); }")
        p.stdin.write("\n")
        check(p.stdout.readline() == "done\n", "is done")
        s[1].send_signal(signal.SIGINT)
        r = finish(s)
        line = WAITS.split("\n").index("    quiet(1)") + 1
        check(r.aggs().get((waits, line)) == 3 and flag(p.pid) == before, "a Ruby that has had such a TracePoint", r, flag(p.pid))
        p.communicate("\n")

    # killed, with the flag alone and with events of the program's own beside it
    for how in ("-", "events"):
        log, pipe = TMP + "/log." + how, TMP + "/in." + how
        os.mkfifo(pipe)
        into = os.open(pipe, os.O_RDWR)
        d = subprocess.Popen([DESCRY, "-x", "engine=inproc", "-n", "ruby$target:::line { @ = count(); }", "-c", "%s %s %s" % (ruby, waits, how)],
                             stdin=into, stdout=open(log, "w"), stderr=subprocess.PIPE)

        def logged(text, log=log):
            end = time.monotonic() + 60
            while text not in open(log).read() and time.monotonic() < end:
                time.sleep(0.05)
            return text in open(log).read()

        check(logged("ready"), how, "is ready", open(log).read())
        pid = next(c for c in descendants(d.pid) if "waits.rb" in open("/proc/%d/cmdline" % c).read())
        check(flag(pid) == 1, how, "the flag is set", flag(pid))
        if how == "events":
            os.write(into, b"\n")
            check(logged("enabled"), how, "enabled")
            check(flag(pid) & 1 and flag(pid) != 1, how, "the program's events beside it", flag(pid))
        d.kill()
        d.wait()
        end = time.monotonic() + 60
        while (flag(pid) == 1 or "descry" in open("/proc/%d/maps" % pid).read()) and time.monotonic() < end:
            time.sleep(0.05)
        check("descry" not in open("/proc/%d/maps" % pid).read(), how, "its memory is gone")
        check(flag(pid) & ~1 != 0 if how == "events" else flag(pid) == 0, how, "the flag afterwards", flag(pid))
        os.write(into, b"\n")
        check(logged("done"), how, "goes on")
        if how == "events":
            check(re.search("calls .*", native).group() in open(log).read(), how, "the program's TracePoint", native, open(log).read())
        os.write(into, b"\n")
        end = time.monotonic() + 60
        while os.path.exists("/proc/%d" % pid) and time.monotonic() < end:
            time.sleep(0.05)
        check(not os.path.exists("/proc/%d" % pid), how, "ends")
        os.close(into)
done()
