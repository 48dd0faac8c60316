# descry check --hardware on a tree made here: names, drivers bound and possible, firmware that is missing, comparison.
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$dir/root

device() # ADDRESS VENDOR DEVICE CLASS MODALIAS [DRIVER]
{
	d=$root/sys/bus/pci/devices/$1
	mkdir -p "$d"
	echo "0x$2" >"$d/vendor"
	echo "0x$3" >"$d/device"
	echo "0x$4" >"$d/class"
	echo "$5" >"$d/modalias"
	if [ -n "$6" ]; then
		mkdir -p "$root/sys/bus/pci/drivers/$6" "$root/sys/module/$6"
		ln -s "../../drivers/$6" "$d/driver"
		ln -sfn "../../../../module/$6" "$root/sys/bus/pci/drivers/$6/module"
	fi
}
nic=pci:v00008086d0000100Esv00001AF4sd00001100bc02sc00i00
sound=pci:v00001106d00003058sv00000000sd00000000bc04sc01i00
device 0000:00:03.0 8086 100e 020000 $nic e1000
device 0000:00:05.0 1106 3058 040100 $sound
modules=$root/lib/modules/6.1.0-test
mkdir -p "$modules/kernel/sound" "$root/usr/share/misc" "$root/lib/firmware"
printf '# Aliases\nalias pci:v00008086d0000100Esv*sd*bc*sc*i* e1000\nalias pci:v00001106d00003058sv*sd*bc*sc*i* snd_via\n' \
	>"$modules/modules.alias"
printf 'e1000.license=GPL\0e1000_other.alias=pci:v00008086d0000100E*\0e1000.firmware=there.bin\0' >"$modules/modules.builtin.modinfo"
printf 'kernel/sound/snd-via.ko: kernel/sound/core.ko\n' >"$modules/modules.dep"
printf '\t.section .modinfo,"a"\n\t.asciz "license=GPL"\n\t.asciz "firmware=via/one.fw"\n\t.asciz "firmware=via/two.fw"\n' |
	cc -x assembler -c -o "$modules/kernel/sound/snd-via.ko" -
mkdir -p "$root/lib/firmware/via"
touch "$root/lib/firmware/there.bin" "$root/lib/firmware/via/two.fw.xz"
printf '# ids\n1106  VIA Technologies\n\t3058  AC97 Audio\n8086  Intel Corporation\n\t100d  Wrong\n\t100e  82540EM Gigabit\n\t\t1af4 1100  QEMU\nC 02  Network controller\n\t00  Ethernet controller\n' \
	>"$root/usr/share/misc/pci.ids"

"$DESCRY" check --hardware --root "$root" --json >"$dir/a.json" || complain "exit $?"
python3 - "$dir/a.json" "$nic" "$sound" <<'END' || status=1
import json, sys
rows = {r["address"]: r for r in json.load(open(sys.argv[1]))["hardware"]}
want = {
    "0000:00:03.0": dict(bus="pci", name="Ethernet controller: Intel Corporation 82540EM Gigabit [8086:100e]", driver="e1000",
                         possible="e1000 e1000_other", firmware_missing=None, modalias=sys.argv[2]),
    "0000:00:05.0": dict(bus="pci", name="VIA Technologies AC97 Audio [1106:3058]", driver=None, possible="snd_via",
                         firmware_missing="via/one.fw", modalias=sys.argv[3]),
}
for address, row in want.items():
    row["address"] = address
    if rows.get(address) != row:
        print("FAILED: %s\n  got  %s\n  want %s" % (address, rows.get(address), row))
        sys.exit(1)
END

# The same machine does not differ; without its sound, with another driver, it does.
"$DESCRY" check --hardware --root "$root" --compare "$dir/a.json" | grep -q 'both machines have the same 2 devices' ||
	complain "it differs from itself"
rm -r "$root/sys/bus/pci/devices/0000:00:05.0"
mkdir -p "$root/sys/bus/pci/drivers/vfio-pci"
ln -sfn ../../drivers/vfio-pci "$root/sys/bus/pci/devices/0000:00:03.0/driver"
"$DESCRY" check --hardware --root "$root" --compare "$dir/a.json" >"$dir/out" || complain "--compare: exit $?"
grep -q '^  other driver .*82540EM.* vfio-pci  *e1000$' "$dir/out" || complain "other driver: $(cat "$dir/out")"
grep -q '^  only there .*AC97.* no driver$' "$dir/out" || complain "only there: $(cat "$dir/out")"
"$DESCRY" check --hardware --root "$root" --json | "$DESCRY" check --hardware --root "$root" --compare - >/dev/null ||
	complain "a list from standard input"

echo '[]' >"$dir/other"
"$DESCRY" check --hardware --compare "$dir/other" 2>"$dir/err" && complain "another file is taken for a list"
grep -q 'is not the output of' "$dir/err" || complain "other file: $(cat "$dir/err")"

# Without /sys and without modules it reports this, and still succeeds.
mkdir "$dir/empty"
"$DESCRY" check --hardware --root "$dir/empty" >"$dir/out" || complain "an empty tree: exit $?"
grep -q 'is not mounted: no device is seen' "$dir/out" || complain "nothing about /sys: $(cat "$dir/out")"

# This machine's own list has every PCI device there is.
if [ -d /sys/bus/pci/devices ]; then
	"$DESCRY" check --hardware --json >"$dir/mine.json" || complain "this machine: exit $?"
	for d in /sys/bus/pci/devices/*; do
		[ ! -e "$d" ] || grep -q "\"address\":\"${d##*/}\"" "$dir/mine.json" || complain "${d##*/} is missing"
	done
fi
exit $status
