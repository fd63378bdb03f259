//go:build linux && !race

package hostile

// room is how much the runtime may grow.
const room = 64 << 20
