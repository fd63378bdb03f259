//go:build race

package shell

// The race detector makes every shim start ten times as slowly.
const fewer = 10
