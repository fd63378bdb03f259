//go:build !linux

// Package pages looks after the pages of memory that the program's own file takes.
package pages

// Forget does nothing: only of Linux it is known what it would be good for.
func Forget() {}
