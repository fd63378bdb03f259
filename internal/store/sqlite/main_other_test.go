//go:build !linux

package sqlite

import (
	"context"
	"errors"
)

var errLinux = errors.New("only Linux can make these faults")

func roleFaults(context.Context, []string) error { return errLinux }
func roleDelete(context.Context, []string) error { return errLinux }
func roleFull(context.Context, []string) error   { return errLinux }
