#!/bin/sh
# Checks greet.sh; the exit code is the number of checks that did not pass.
cd "$(dirname "$0")" || exit 99
failed=0

check() {
	want=$1
	shift
	got=$(sh greet.sh "$@")
	if [ "$got" = "$want" ]; then
		echo "ok    greet.sh $*"
	else
		echo "FAIL  greet.sh $*: got \"$got\", want \"$want\""
		failed=$((failed + 1))
	fi
}

check "Hello, Ada!" Ada
sleep 0.5 2>/dev/null || sleep 1 # long enough to be interrupted in the middle
check "Hello, world!"
exit "$failed"
