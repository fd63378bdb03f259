//go:build linux

package sandbox_test

func runtimeToKill(dir string) int { return 1 }
