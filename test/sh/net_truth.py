#!/usr/bin/env python3
# ip, tcp, udp, mib, lockstat and cpc beside the traced programs' own numbers and the kernel's counters.
# serial
from live import *
import socket
import struct
import threading

if not finish(start("-l", "-n", "tcp:::state-change")).rc == 0:
    skip("this kernel has no tracepoint inet_sock_set_state")

HOST = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
BYTES = 1000000


def closed_port(family):
    """Returns a port without a listener."""
    with socket.socket(family) as s:
        s.bind((HOST[family], 0))
        return s.getsockname()[1]


def transfer(family, host, size):
    """One connection, size bytes from client to server. (server port, client port)"""
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind((host, 0))
        server.listen()
        client.connect(server.getsockname()[:2])
        conn, _ = server.accept()
        got = []

        def receive():
            while True:
                data = conn.recv(65536)
                if not data:
                    break
                got.append(len(data))

        t = threading.Thread(target=receive)
        t.start()
        client.sendall(b"x" * size)
        ports = server.getsockname()[1], client.getsockname()[1]
        client.shutdown(socket.SHUT_WR)
        t.join()
        conn.close()
        check(sum(got) == size, "the tracee's own transfer")
        return ports


def refused(family, host, port):
    """The client's port of a connection that is refused."""
    with socket.socket(family) as s:
        s.bind((host, 0))
        mine = s.getsockname()[1]
        check(s.connect_ex((host, port)) != 0, "nobody listens")
        return mine


def datagram(family, host, to, data):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind((host, 0))
        s.sendto(data, (host, to))
        return s.getsockname()[1]


def traced(program, work, *args):
    """Runs work() while the program is traced."""
    begun = tracing(*args, "-n", program)
    result = work()
    time.sleep(0.3)
    begun[1].send_signal(signal.SIGINT)
    r = finish(begun)
    check(r.rc == 0 and "invalid address" not in r.err and "drop" not in r.err, "no fault, no drop\n%s" % r)
    return r, result


STATE = ('tcp:::state-change { printf("state %s %s %s %d %s %d|\\n", tcp_state_string[args[5]->tcps_state], '
         'tcp_state_string[args[3]->tcps_state], args[3]->tcps_laddr, args[3]->tcps_lport, args[3]->tcps_raddr, args[3]->tcps_rport); } ')
EVENTS = ('tcp:::connect-*,tcp:::accept-* { printf("%s %s %d %s %d %s %d %s %d %d %s|\\n", probename, args[3]->tcps_laddr, '
          'args[3]->tcps_lport, args[3]->tcps_raddr, args[3]->tcps_rport, args[2]->ip_saddr, args[4]->tcp_sport, '
          'args[2]->ip_daddr, args[4]->tcp_dport, args[2]->ip_ver, tcp_state_string[args[3]->tcps_state]); } ')

for family in HOST:
    host, ver = HOST[family], 4 if family == socket.AF_INET else 6
    none = closed_port(family)

    def work():
        s, c = transfer(family, host, 1000)
        return s, c, refused(family, host, none)

    r, (s, c, x) = traced(STATE + EVENTS, work, "-q")
    rows = [line.rstrip("|").split() for line in r.lines() if line.endswith("|")]

    def event(name, mine, other, fromport, toport, state):
        want = [name, host, str(mine), host, str(other), host, str(fromport), host, str(toport), str(ver), state]
        check(rows.count(want) == 1, want, r)

    event("connect-request", c, s, c, s, "state-syn-sent")
    event("connect-established", c, s, s, c, "state-established")
    event("accept-established", s, c, c, s, "state-established")
    event("connect-request", x, none, x, none, "state-syn-sent")
    event("accept-refused", none, x, none, x, "state-closed")
    event("connect-refused", x, none, none, x, "state-syn-sent")
    mine = [(row[1][6:], row[2][6:]) for row in rows if row[0] == "state" and row[4] == str(c)]
    check(mine[:2] == [("syn-sent", "established"), ("established", "fin-wait-1")] and mine[-1][1] == "closed", "client's states", mine)
    theirs = [(row[1][6:], row[2][6:]) for row in rows if row[0] == "state" and row[4] == str(s) and row[6] == str(c)]
    check(theirs == [("listen", "syn-received"), ("syn-received", "established"), ("established", "close-wait"),
                     ("close-wait", "last-ack"), ("last-ack", "closed")], "server's states", theirs)

    # bytes sent and received: those that the program sent, except for retransmissions
    r, (s, c) = traced('tcp:::send /args[3]->tcps_retransmit == 0/ { @s[args[4]->tcp_sport, args[4]->tcp_dport] = sum(args[2]->ip_plength - args[4]->tcp_offset); } '
                       'tcp:::send /args[3]->tcps_retransmit != 0/ { @x[args[4]->tcp_sport, args[4]->tcp_dport] = sum(args[2]->ip_plength - args[4]->tcp_offset); } '
                       'tcp:::receive { @r[args[4]->tcp_sport, args[4]->tcp_dport] = sum(args[2]->ip_plength - args[4]->tcp_offset); } '
                       'ip:::send /args[3]->if_local == 1/ { @i[args[2]->ip_saddr, args[3]->if_name] = sum(args[2]->ip_plength); } '
                       'ip:::receive /args[3]->if_local == 1/ { @j[args[2]->ip_saddr, args[3]->if_name] = sum(args[2]->ip_plength); } ',
                       lambda: transfer(family, host, BYTES), "--json")
    again = r.aggs("x").get((c, s), 0)
    check(r.aggs("s").get((c, s)) == BYTES, "tcp:::send", r.aggs("s"), r.aggs("x"))
    check(BYTES <= r.aggs("r").get((c, s), 0) <= BYTES + again, "tcp:::receive", r.aggs("r"), again)
    check(r.aggs("s").get((s, c)) == 0, "nothing was sent back", r.aggs("s"))
    check(BYTES < r.aggs("i").get((host, "lo"), 0) < BYTES * 1.1 + again, "ip:::send", r.aggs("i"))
    check(BYTES < r.aggs("j").get((host, "lo"), 0) < BYTES * 1.1 + again, "ip:::receive", r.aggs("j"))

    # sequence numbers and the socket's data
    r, (s, c) = traced('tcp:::send { printf("%d %d %d %d %d %d %d %d %d %d %d %s|\\n", args[4]->tcp_sport, args[4]->tcp_dport, '
                       'args[2]->ip_plength - args[4]->tcp_offset, args[4]->tcp_seq - args[3]->tcps_iss, args[3]->tcps_snxt - args[4]->tcp_seq, '
                       'args[3]->tcps_mss, args[3]->tcps_rto, args[3]->tcps_cwnd / (args[3]->tcps_mss + (args[3]->tcps_mss == 0)), '
                       'args[4]->tcp_flags, args[3]->tcps_local, args[3]->tcps_state == TCP_STATE_ESTABLISHED, execname); }',
                       lambda: transfer(family, host, 5000), "-q")
    rows = [line.rstrip("|").split() for line in r.lines() if line.endswith("|")]
    sent = [list(map(int, row[2:11])) for row in rows if row[:2] == [str(c), str(s)]]
    data = [row for row in sent if row[0] == 5000]
    check(sent[0][:3] == [0, 0, 0] and sent[0][6] == 2, "the SYN", sent)
    check(len(data) == 1 and data[0][1:3] == [1, 0] and data[0][3] > 500 and 200 <= data[0][4] <= 1000 and data[0][5] == 10 and
          data[0][6] & 0x18 == 0x18 and data[0][7:] == [1, 1], "the data", sent)

    # datagrams
    r, port = traced('udp:::send,udp:::receive { printf("%s %s %d %s %d %s %s %d %d %d %d|\\n", probename, args[3]->udps_laddr, args[3]->udps_lport, '
                     'args[3]->udps_raddr, args[3]->udps_rport, args[2]->ip_saddr, args[2]->ip_daddr, args[4]->udp_sport, '
                     'args[4]->udp_dport, args[4]->udp_length, args[2]->ip_plength); }',
                     lambda: datagram(family, host, none, b"x" * 300), "-q")
    rows = [line.rstrip("|").split() for line in r.lines() if line.endswith("|") and str(port) in line.split()]
    packet = [host, host, str(port), str(none), "308", "308"]
    check(sorted(rows) == [["receive", host, str(none), host, str(port)] + packet, ["send", host, str(port), host, str(none)] + packet],
          "udp", rows)

# headers of both versions
r, _ = traced('ip:::send /args[4]->ipv4_protocol == IPPROTO_UDP/ { printf("%d %d %d %d %s %s %s %d %d %d %d|\\n", args[4]->ipv4_ver, args[4]->ipv4_ihl, '
              'args[4]->ipv4_length, args[4]->ipv4_ttl, args[4]->ipv4_protostr, args[4]->ipv4_saddr, args[4]->ipv4_daddr, '
              'args[4]->ipv4_flags, args[4]->ipv4_offset, args[5]->ipv6_ver, args[5]->ipv6_hlim); } '
              'ip:::receive /args[5]->ipv6_nexthdr == IPPROTO_UDP/ { printf("%d %d %d %s %s %s %d %d|\\n", args[5]->ipv6_ver, args[5]->ipv6_plen, args[5]->ipv6_hlim, '
              'args[5]->ipv6_nextstr, args[5]->ipv6_saddr, args[5]->ipv6_daddr, args[4]->ipv4_ver, args[4]->ipv4_length); }',
              lambda: (datagram(socket.AF_INET, "127.0.0.1", 9, b"x" * 33), datagram(socket.AF_INET6, "::1", 9, b"x" * 44)), "-q")
check("4 20 61 64 UDP 127.0.0.1 127.0.0.1 4 0 0 0|" in r.lines(), "IPv4 header", r)
check("6 52 64 UDP ::1 ::1 0 0|" in r.lines(), "IPv6 header", r)

# the one-liners, in their usual form
r, (s, c) = traced("tcp:::connect-established { @[args[3]->tcps_raddr, args[3]->tcps_rport] = count(); }",
                   lambda: transfer(socket.AF_INET, "127.0.0.1", 10), "--json")
check(r.aggs().get(("127.0.0.1", s)) == 1, "connections by address and port", r)
r, _ = traced("ip:::send { @[args[2]->ip_daddr] = sum(args[2]->ip_plength); }",
              lambda: transfer(socket.AF_INET, "127.0.0.1", 100000), "--json")
check(100000 < r.aggs().get("127.0.0.1", 0) < 130000, "packets by destination", r)


# the kernel's own counters
def snmp():
    lines, d = open("/proc/net/snmp").read().splitlines(), {}
    for names, values in zip(lines[::2], lines[1::2]):
        proto = names.split(":")[0].lower()
        d.update({proto + k: int(v) for k, v in zip(names.split()[1:], values.split()[1:])})
    return d


def protocols():
    transfer(socket.AF_INET, "127.0.0.1", 10)
    refused(socket.AF_INET, "127.0.0.1", closed_port(socket.AF_INET))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client = socket.create_connection(server.getsockname())
        conn, _ = server.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        conn.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        u.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2000)
        u.bind(("127.0.0.1", 0))
        for _ in range(50):
            u.sendto(b"x" * 1000, u.getsockname())


def chat():
    protocols()
    transfer(socket.AF_INET, "127.0.0.1", 100000)
    none = closed_port(socket.AF_INET)
    for _ in range(3):
        datagram(socket.AF_INET, "127.0.0.1", none, b"x")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        u.bind(("127.0.0.1", 0))
        for _ in range(7):
            u.sendto(b"x" * 100, u.getsockname())
            u.recv(100, socket.MSG_PEEK)
            u.recv(100)
    # an echo request with a wrong checksum, and an echo request that is answered
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as p:
        p.sendto(struct.pack("!BBHHH", 8, 0, 1, 1, 1), ("127.0.0.1", 0))
        p.sendto(struct.pack("!BBHHH", 8, 0, 0xf7fd, 1, 1), ("127.0.0.1", 0))


# other programs of this machine move the counters too: one of five runs must have equal counts
SAME = {"tcpActiveOpens": "tcpActiveOpens", "tcpPassiveOpens": "tcpPassiveOpens", "tcpAttemptFails": "tcpAttemptFails", "tcpEstabResets": "tcpEstabResets",
        "tcpOutRsts": "tcpOutRsts", "udpInOverflows": "udpRcvbufErrors", "tcpInSegs": "tcpInSegs", "tcpOutSegs": "tcpOutSegs", "udpHCInDatagrams": "udpInDatagrams", "udpHCOutDatagrams": "udpOutDatagrams",
        "udpNoPorts": "udpNoPorts", "icmpInMsgs": "icmpInMsgs", "icmpInDestUnreachs": "icmpInDestUnreachs", "icmpInEchoReps": "icmpInEchoReps",
        "icmpInCksumErrs": "icmpInCsumErrors", "icmpOutEchoReps": "icmpOutEchoReps", "icmpOutDestUnreachs": "icmpOutDestUnreachs"}
for attempt in range(5):
    before = {}
    r, _ = traced("mib::: { @[probename] = sum(arg0); }", lambda: (before.update(snmp()), chat()), "--json")
    a, after = r.aggs(), snmp()
    moved = {name: (a.get(name, 0), after[theirs] - before[theirs]) for name, theirs in SAME.items()}
    data = a.get("tcpOutDataBytes"), a.get("tcpInDataInorderBytes", 0) + a.get("tcpInDataUnorderBytes", 0)
    if all(ours == theirs for ours, theirs in moved.values()) and data == (100010, 100010):
        break
check(all(ours == theirs > 0 for ours, theirs in moved.values()), "mib beside /proc/net/snmp", moved)
check(data == (100010, 100010) and a.get("icmpInEchos") == 2 and a.get("icmpOutEchos") == 2, "mib: data and echos", a)
check(a.get("ipIfStatsHCOutOctets") == a.get("ipIfStatsHCInOctets", 0) > 100000, "mib: octets on the loopback device", a)

# another network namespace behind a pair of devices: real devices, neighbours to be found first
if shutil.which("ip"):
    ns = "descry%d" % os.getpid()
    # ip-netns(8) makes it a mount point, which os.path.ismount() does not see where /run is on the same file system
    is_mounted = lambda: any(line.split()[1] == "/run/netns" for line in open("/proc/mounts"))
    mounted = is_mounted()
    if sh("ip netns add %s && ip link add %sa type veth peer name b netns %s && ip addr add 192.0.2.1/24 dev %sa && ip link set %sa up && "
          "ip -n %s addr add 192.0.2.2/24 dev b && ip -n %s link set b up" % (ns, ns, ns, ns, ns, ns, ns)).returncode == 0:
        def over_devices():
            server = subprocess.Popen(["ip", "netns", "exec", ns, sys.executable, "-m", "http.server", "8000"], cwd=TMP,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(TMP + "/file", "wb") as f:
                f.write(b"x" * BYTES)
            for _ in range(100):
                with socket.socket() as probing:
                    if probing.connect_ex(("192.0.2.2", 8000)) == 0:
                        break
                time.sleep(0.1)
            with socket.create_connection(("192.0.2.2", 8000)) as s:
                s.sendall(b"GET /file HTTP/1.0\r\n\r\n")
                got, port = 0, s.getsockname()[1]
                while True:
                    data = s.recv(65536)
                    if not data:
                        break
                    got += len(data)
            server.kill()
            server.wait()
            return port, got

        r, (port, got) = traced('tcp:::receive /args[3]->tcps_rport == 8000/ { @r[args[3]->tcps_lport] = sum(args[2]->ip_plength - args[4]->tcp_offset); '
                                '@l[args[3]->tcps_local] = count(); } '
                                'ip:::receive { @i[args[2]->ip_saddr, args[3]->if_name] = sum(args[2]->ip_plength); } '
                                'tcp:::connect-established { @c[args[3]->tcps_raddr, args[3]->tcps_lport] = count(); }', over_devices, "--json")
        check(r.aggs("r").get(port) == got > BYTES, "bytes received over devices", r.aggs("r"), port, got)
        check(list(r.aggs("l")) == [0], "not local", r.aggs("l"))
        check(r.aggs("c").get(("192.0.2.2", port)) == 1, "connection over devices", r.aggs("c"))
        check(got < r.aggs("i").get(("192.0.2.2", ns + "a"), 0) < got * 1.2, "ip:::receive over devices", r.aggs("i"))
    sh("ip link del %sa; ip netns del %s" % (ns, ns))
    while not mounted and is_mounted() and sh("umount /run/netns").returncode == 0:
        pass

# locks: three writers compete for the mutex of one pipe; the time of a wait is less than that of the run
with open(TMP + "/locks.sh", "w") as f:
    f.write("(cat /dev/zero & cat /dev/zero & cat /dev/zero & wait) | head -c 300000000 >/dev/null\n")
r = descry("--json", "-n", 'lockstat:::*-block,lockstat:::*-spin { @[probename] = count(); @min = min(arg1); @max = max(arg1); } '
           'sdt:::contention_end { @ends = count(); }', c="sh " + TMP + "/locks.sh")
ends = r.aggs("ends").get((), 0)
missed = sum(int(n) for n in re.findall(r'"kind":"missed","count":(\d+)', r.out))
check(ends * 0.9 <= sum(r.aggs().values()) <= ends + missed, "every wait that ends is one firing", r)
if r.aggs():
    check(0 < r.aggs("min")[()] <= r.aggs("max")[()] < r.secs * 1e9, "times of waits", r)

# counted events: page faults as the tracee has caused them
r = descry("--json", "-n", "cpc:::page_faults-all-10 /pid == $target/ { @f = count(); } cpc:::minor_faults-user-10 /pid == $target/ { @u = count(); } "
           "cpc:::cpu_clock-all-1000000 /pid == $target/ { @c = count(); }", c=LIVE + " faults 3000")
near(r.aggs("f").get((), 0), 300, 0.15, "page faults, by tens")
near(r.aggs("u").get((), 0), 300, 0.15, "page faults from user code, by tens")
done()
