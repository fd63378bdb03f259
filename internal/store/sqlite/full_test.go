//go:build linux

package sqlite

import "context"

func roleFull(ctx context.Context, args []string) error { return nil }
