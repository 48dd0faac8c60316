#!/usr/bin/env python3
"""What the guest runs, and whether what it printed is right: the golden and run tests' conventions (test/README.md) by the
code of tools/run-tests itself, with a run() that happens elsewhere.

usage: cases plan  --build DIR --guest DIR [PATTERN...]
                 writes DIR/tests/*, shell scripts, and prints the programs they start
       cases judge --build DIR --guest DIR --results FILE --console FILE --status N [--bless] [PATTERN...]
"""
import argparse
import glob
import importlib.machinery
import importlib.util
import os
import re
import shlex
import sys
import tarfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_runner():
    loader = importlib.machinery.SourceFileLoader("run_tests", os.path.join(ROOT, "tools", "run-tests"))
    spec = importlib.util.spec_from_loader("run_tests", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


rt = load_runner()
rt.kernel_refuses = lambda: None

EMULATED = 4  # the time limit of a case here, and in a guest whose processor is emulated on a busy machine: the verifier takes longest


class Exit:
    """A program that reports by its exit code."""

    def __init__(self, argv, timeout=60):
        self.command, self.timeout = argv, timeout

    def run(self, args, engine):
        return rt.judge(self.command, self.timeout)


class Way(rt.Case):
    """The same test with the probes of fbt fired in one way: `//@ fbt: fentry, kprobe`."""

    def __init__(self, path, way):
        self.way = way
        super().__init__(path)
        self.cmd = "-x fbt=%s %s" % (way, self.cmd or "")

    def option(self, key, value):
        if key != "fbt":
            super().option(key, value)


def ways(path):
    """The case of a file and, when it names ways, one for each; all must print the same."""
    m = re.search(r"^//@ fbt: (.*)$", open(path, errors="replace").read(), re.M)
    name = os.path.splitext(path)[0][len("test/"):]
    found = [(name, Way(path, "auto"))] if m else [(name, rt.Case(path))]
    return found + [("%s (%s)" % (name, way.strip()), Way(path, way.strip())) for way in (m.group(1).split(",") if m else [])]


class Example(Exit):
    """A script of examples/: is it accepted, and does it end with the program it watches?"""

    def __init__(self, args, path):
        text = open(path).read()
        argv = [args.descry, "-x", "engine=kernel", "-s", path, "-c",
                os.path.join(args.build, "test", "tracee_live") + " malloc 20"]
        # Probes of an interpreter are not in the program that it watches here.
        super().__init__(argv + ["-Z"] * ("python$target" in text) + ["tracee_live"] * ("$$1" in text))


def cases(args):
    """(name, case) of every test that runs in the kernel."""
    found = []

    def listed(pattern):
        return sorted(glob.glob(pattern, recursive=True))

    for path in listed("test/run/**/*.d") + listed("test/kernels/**/*.d"):
        found += [(name, case) for name, case in ways(path) if "kernel" in case.engines or case.engines == [None]]
    found += [(os.path.splitext(path)[0], Example(args, path)) for path in listed("examples/*.d")]
    for path in listed("test/unit/test_kernel_*.c") + ["test/unit/test_isa_kernel.c", "test/unit/test_probe_fbt.c"]:
        name = os.path.basename(path)[:-2]
        found.append(("unit/" + name[5:], Exit([os.path.join(args.build, "test", name)], 120)))
    return [f for f in found if not args.patterns or any(p in f[0] for p in args.patterns)]


def key_of(name):
    return re.sub("[/ ()]+", "+", name)


def reason_missing(args, name, case):
    if os.path.basename(name) == "opt_cpp":
        return "no C preprocessor in the guest"
    if isinstance(case, Exit):
        words = shlex.split(" ".join(case.command))
        for word in words:
            if word.startswith(args.build) and not os.path.exists(word):
                return "%s is not built" % os.path.relpath(word, args.build)
    return None


def plan(args):
    tests = os.path.join(args.guest, "tests")
    os.makedirs(tests)
    with open(os.path.join(args.guest, "root"), "w") as f:
        f.write(ROOT + "\n")
    programs = set()
    for name, case in cases(args):
        if reason_missing(args, name, case):
            continue

        def write(argv, timeout=60, env=None, program=None):
            words = ["%s=%s" % kv for kv in (env or {}).items()]
            program = program or argv[0]
            programs.add(program)
            with open(os.path.join(tests, key_of(name)), "w") as f:
                f.write("# timeout %d\n" % (timeout * EMULATED))
                f.write("export %s\n" % shlex.join(words) if words else "")
                # the name decides how descry reads its options
                head = ["exec"] + (["-a", argv[0]] if program != argv[0] else []) + [program]
                f.write(shlex.join(head + argv[1:]) + "\n")
            return 0, "", ""

        rt.run = write
        case.run(args, "kernel")
    print("\n".join(sorted(programs)))


def read_results(path):
    """{member: text} of the members that were complete when the guest ended."""
    found = {}
    try:
        with tarfile.open(path, ignore_zeros=True) as tar:
            for member in tar:
                f = tar.extractfile(member)
                if f:
                    found[member.name] = f.read().decode(errors="replace")
    except (tarfile.TarError, OSError, EOFError) as e:
        if not found:
            print("no results: %s" % e, file=sys.stderr)
    return found


def judge(args):
    results = read_results(args.results)
    release = results.get("kernel", "").strip()
    kernel = "kernel-" + (".".join(release.split(".")[:2]) or "unknown")
    counts = {"pass": 0, "fail": 0, "skip": 0}

    def say(name, result, took=0):
        counts[result.state] += 1
        text = "%s %s/%s%s" % (result.state, kernel, name, " (%.1f s)" % took if took > 2 else "")
        if result.state == "skip":
            text += ": " + result.detail
        elif result.state == "fail":
            text += "\n" + "".join("    %s\n" % line for line in result.detail.splitlines()[:100])
        print(text.rstrip())

    late = False
    planned = os.listdir(os.path.join(args.guest, "tests"))
    for name, case in cases(args):
        n = key_of(name)
        missing = reason_missing(args, name, case)
        if missing:
            say(name, rt.Result("skip", missing))
            continue
        if n not in planned:
            continue  # came meanwhile
        if n + ".err" not in results:
            if not late:
                say(name, rt.Result("fail", "the guest ended before or in this test (QEMU's exit: %s)\n%s" %
                                    (args.status, tail(args.console))))
            else:
                say(name, rt.Result("skip", "the guest had ended"))
            late = True
            continue
        code = int(results[n + ".code"])
        if code > 128:
            code = "signal %d or exit %d" % (code - 128, code)

        def recorded(argv, timeout=60, env=None, program=None):
            return code, results[n + ".out"], results[n + ".err"]

        rt.run = recorded
        if args.bless and isinstance(case, rt.Case) and case.path.startswith("test/kernels/"):
            case.engines = ["kernel"]
        before, after = map(float, results[n + ".time"].split())
        say(name, case.run(args, "kernel"), after - before)
    if not late and "end" not in results:
        say("end", rt.Result("fail", "the guest did not end by itself\n" + tail(args.console)))
    print("%d passed, %d failed, %d skipped" % (counts["pass"], counts["fail"], counts["skip"]))
    return 1 if counts["fail"] else 0


def tail(path):
    try:
        return "".join(open(path, errors="replace").readlines()[-40:])
    except OSError as e:
        return str(e)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["plan", "judge"])
    parser.add_argument("--build", required=True)
    parser.add_argument("--guest")
    parser.add_argument("--results")
    parser.add_argument("--console")
    parser.add_argument("--status")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("patterns", nargs="*")
    args = parser.parse_intermixed_args()
    args.build = os.path.abspath(args.build)
    args.descry = os.path.join(args.build, "cmd", "descry")
    os.chdir(ROOT)
    if args.what == "plan":
        return plan(args)
    return judge(args)


if __name__ == "__main__":
    sys.exit(main())
