//go:build race

package read_test

// raceEnabled makes the large loops smaller.
const raceEnabled = true
