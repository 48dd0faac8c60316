#!/usr/bin/env python3
# timeout: 600
# descry calls: SQL of interpreters whose extensions are loaded by dlopen: Python, Perl, Ruby and PHP with SQLite, all of them with a
# MariaDB server that the test starts. PHP's own client exports no function that takes SQL; its statements are in the calls of send(2). Each line has the SQL text, the time of day and the duration. ltrace 0.7.3 (Debian 12) shows
# none of it: `ltrace -ttT -x sqlite3_step -x sqlite3_prepare_v2 php s.php` prints "+++ exited (status 0) +++" and the interpreter's own
# calls ("free(0x1b381ee0) = <void> <0.000101>"), because it looks for the function only in libraries that are loaded at the start.
from live import *

TIME = r"^\d\d:\d\d:\d\d\.\d{6} "
LASTED = r" <\d+\.\d{6}>$"


def write(name, text):
    with open(name, "w") as f:
        f.write(text)


def works(*command):
    return bool(shutil.which(command[0])) and subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


os.chdir(TMP)
write("s.py", 'import sqlite3\nprint(sqlite3.connect(":memory:").execute("select 40 + 2").fetchone()[0])\n')
write("s.pl", 'use DBI;\nmy $c = DBI->connect("dbi:SQLite:dbname=:memory:", "", "", {RaiseError => 1});\nprint $c->selectrow_array("select 40 + 2"), "\\n";\n')
write("s.rb", 'require "sqlite3"\nc = SQLite3::Database.new(":memory:")\nGC.start\nputs c.execute("select 40 + 2")[0][0]\nGC.start\nc.execute("select 1")\n')
write("s.php", '<?php\n$c = new SQLite3(":memory:");\necho $c->querySingle("select 40 + 2"), "\\n";\n')
for command in (["/usr/bin/python3", "s.py"], ["/usr/bin/perl", "s.pl"], ["/usr/bin/ruby", "s.rb"], ["/usr/bin/php", "s.php"]):
    if not works(*command):
        print("note: %s with SQLite is not installed" % command[0])
        continue
    r = descry("calls", "-s", "200", "-ttT", "-x", "sqlite3_step", "-x", "sqlite3_prepare_v2", *command, rc=0)
    check(r.out == "42\n", command, "its own output", r)
    check(re.search(TIME + r'sqlite3_prepare_v2\(0x\w+, "select 40 \+ 2", -?\d+, 0x\w+, \w+\) += SQLITE_OK' + LASTED, without_objects(r.err), re.M), command, "the SQL", r)
    check(re.search(TIME + r"sqlite3_step\(0x\w+\) += SQLITE_ROW" + LASTED, without_objects(r.err), re.M), command, "a step", r)
    if command[0].endswith("ruby"):
        # the collector marks the values on each stack once a collection
        r = descry("calls", "-s", "200", "-ttT", "-x", "sqlite3_prepare_v2", "-x", "rb_gc_mark_vm_stack_values", *command, rc=0)
        names = [m for m in re.findall(TIME + r'(rb_gc_mark_vm_stack_values|sqlite3_prepare_v2\(0x\w+, "select [^"]*")', without_objects(r.err), re.M)]
        sql = [i for i, n in enumerate(names) if "select 40" in n or "select 1" in n]
        check(len(sql) == 2 and any(n.startswith("rb_gc") for n in names[sql[0]:sql[1]]) and any(n.startswith("rb_gc") for n in names[:sql[0]]),
              "collections between statements", names)

# the calls that an extension makes, which is loaded later, and which loads the library that it calls
found = subprocess.run(["/usr/bin/python3", "-c", "import _sqlite3; print(_sqlite3.__file__)"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
if found.endswith(".so"):
    name = os.path.basename(found)
    for caller in found, os.path.dirname(found) + "/_sqlite3*":
        r = descry("calls", "-T", "-e", "sqlite3_*@" + caller, "/usr/bin/python3", "s.py", rc=0)
        check(r.out == "42\n" and re.search("^" + re.escape(name) + r'->sqlite3_step\(0x\w+\) += SQLITE_ROW <\d\.\d{6}>$', r.err, re.M), "the extension's calls", r)

# MariaDB
write("m.py", 'import sys, MySQLdb\nc = MySQLdb.connect(unix_socket=sys.argv[1], user="root").cursor()\nc.execute("select 40 + 2")\nprint(c.fetchone()[0])\n')
write("m.pl", 'use DBI;\nmy $c = DBI->connect("DBI:MariaDB:mariadb_socket=$ARGV[0]", "root", "", {RaiseError => 1});\n'
      'print $c->selectrow_array("select 40 + 2"), "\\n";\n')
write("m.rb", 'require "mysql2"\nputs Mysql2::Client.new(socket: ARGV[0], username: "root").query("select 40 + 2").first.values[0]\n')
write("m.php", '<?php\n$c = new mysqli("localhost", "root", "", "", 0, $argv[1]);\necho $c->query("select 40 + 2")->fetch_row()[0], "\\n";\n')
os.environ["PATH"] += ":/usr/sbin"
user = subprocess.run(["id", "-un"], stdout=subprocess.PIPE, text=True).stdout.strip()
clients = [c for c, m in ((["/usr/bin/python3", "m.py"], ["/usr/bin/python3", "-c", "import MySQLdb"]),
                          (["/usr/bin/perl", "m.pl"], ["/usr/bin/perl", "-MDBD::MariaDB", "-e", "1"]),
                          (["/usr/bin/ruby", "m.rb"], ["/usr/bin/ruby", "-rmysql2", "-e", "1"]),
                          (["/usr/bin/php", "m.php"], ["/usr/bin/php", "-r", "exit(class_exists('mysqli') ? 0 : 1);"])) if works(*m)]
if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
    print("note: mariadb-server is not installed")
elif not clients:
    print("note: no client of MariaDB is installed for Python, Perl, Ruby or PHP")
else:
    made = subprocess.run(["mariadb-install-db", "--no-defaults", "--datadir=" + TMP + "/data", "--auth-root-authentication-method=normal",
                           "--skip-test-db", "--user=" + user], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(made.returncode == 0, "a database", made.stdout)
    log = open("server.log", "w")
    server = subprocess.Popen(["mariadbd", "--no-defaults", "--datadir=" + TMP + "/data", "--socket=" + TMP + "/s", "--skip-networking",
                               "--user=" + user, "--pid-file=" + TMP + "/pid"], stdout=log, stderr=log)
    try:
        while not os.path.exists("s") and server.poll() is None:
            time.sleep(0.05)
        check(server.poll() is None, "the server runs", open("server.log").read())
        for command in clients:
            if command[0].endswith("php"):
                r = descry("calls", "-s", "200", "-ttT", "-e", "send@MAIN", *command, TMP + "/s", rc=0)
                check(r.out == "42\n", command, "its own output", r)
                check(re.search(TIME + r'php\S*->send\(\d+, "[^"]*\\003select 40 \+ 2", 18, 0x40\) += 18' + LASTED, r.err, re.M), command, "the SQL", r)
                continue
            # Ruby's sends a query, lets other threads run, and reads the answer
            function = "mysql_send_query" if command[0].endswith("ruby") else "mysql_real_query"
            r = descry("calls", "-s", "200", "-ttT", "-x", function, *command, "s", rc=0)
            check(r.out == "42\n", command, "its own output", r)
            check(re.search(TIME + function + r'\(0x\w+, "select 40 \+ 2", 13\) += 0' + LASTED, without_objects(r.err), re.M), command, "the SQL", r)
    finally:
        server.terminate()
        server.wait()
        log.close()
done()
