//go:build !linux

package sqlite

func exchange(a, b string) error { return exchangeInSteps(a, b) }
