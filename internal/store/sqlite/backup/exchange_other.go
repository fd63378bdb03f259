//go:build !linux

package backup

func exchange(a, b string) error { return exchangeInSteps(a, b) }
