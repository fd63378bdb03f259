package sqlite

import "context"

func roleFaults(ctx context.Context, args []string) error { return nil }
func roleFull(ctx context.Context, args []string) error { return nil }
