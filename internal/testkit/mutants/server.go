package main

// serverMutants break the server.
func serverMutants() []mutant {
	return []mutant{
		{"an operator may approve",
			swap("auth.May", "return r == Owner || r == Approver\n", "return r == Owner || r == Approver || r == Operator\n"),
			"auth ."},
		{"the scope of a command isn't looked at",
			swap("server.perform", "c.Scope", "auth.Read"),
			"server Matrix|NeedsTheScope|NoTenant|Pages|WasGood"},
		{"every token is of the default tenant",
			swap("server.tenant", "t := s.tenants[name]", "t := s.tenants[auth.DefaultTenant]"),
			"server Matrix|NeedsTheScope|NoTenant|Pages|WasGood"},
		{"the origin of a page is ignored",
			never("server.checkOrigin", "!slices.Contains(s.origins"),
			"server Matrix|NeedsTheScope|NoTenant|Pages|WasGood"},
		{"an unknown field is passed over",
			swap("app/input.fitsStruct", "f.Name == name", "strings.EqualFold(f.Name, name)"),
			"server HeldToItsType"},
		{"a turn told twice is two",
			swap("app/turns.mint", `r.Key == ""`, "true"),
			"server ToldTwice"},
		{"what is unfinished waits after a restart until somebody asks",
			drop("engine.scan", "d.look(rows)"),
			"server GoesOnByItself"},
		{"more sessions run than the pool has room for",
			swap("engine.choose", "len(d.running) < d.pool.mine", "len(d.running) <= d.pool.mine"),
			"engine NeverMore"},
		{"a refused command leaves no trace",
			swap("app.Do", "if rerr := c.Recorder.Done(ctx, c, d);", "if err != nil { return nil, err }; if rerr := c.Recorder.Done(ctx, c, d);"),
			"server RequestsAreAudited"},
		{"who attaches in the middle of a piece sees all of it",
			swap("server.pieces", "p.Text[a.offset-p.Offset:]", "p.Text"),
			"server InputReachesAProgramsTerminal"},
	}
}
