//go:build linux && race

package hostile

// room is how much the runtime may grow: the race detector takes several times
// what the program does.
const room = 640 << 20
