# Random D programs with known output (test/fuzz/dsmith.py), on both engines; twenty seconds of a fixed set of seeds.
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
dsmith="python3 test/fuzz/dsmith.py --descry $DESCRY"
$dsmith --seed 1 --count 150 --engines interp --seconds 8 || exit 1
why=$("$DESCRY" -x engine=kernel -q -n 'BEGIN { exit(0); }' 2>&1) || {
	echo "the interpreter only: the kernel does not run programs here: $(printf '%s' "$why" | tail -n 1)" >&2
	exit 77
}
exec $dsmith --seed 1001 --count 100 --size 4 --engines interp,kernel --seconds 12
