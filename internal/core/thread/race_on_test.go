//go:build race

package thread

const raceEnabled = true
