package main

var (
	vendors   = suite{"./internal/cli", "TestAKeyStaysWithItsHost|TestEachVendor"}
	described = suite{"./script", "TestScripts/providers$"}
	plants    = suite{"./internal/cli", "TestPlanted"}
	vaults    = suite{"./internal/vault", "."}
)

// Keys: where they come from, where they go.
var keyMutants = []mutant{
	{breaks: "keys: one goes to whatever address a session names",
		edits:  []edit{{"internal/cli/providers.go", "if !a.models.belongs(v, base) {", "if false {"}},
		caught: []suite{vendors, described}},
	{breaks: "keys: an address that was named for another provider gets one",
		edits:  []edit{{"internal/cli/providers.go", `m.said[v.name+" "+origin(base)]`, `m.said["other "+origin(base)] || m.said[v.name+" "+origin(base)]`}},
		caught: []suite{vendors}},
	{breaks: "keys: an address follows to another provider",
		edits:  []edit{{"internal/cli/layers.go", "\t\tdelete(l.set, \"base-url\")\n", ""}},
		caught: []suite{described}},
	{breaks: "keys: a workspace describes providers unasked",
		edits:  []edit{{"internal/cli/providers.go", "if f.counts {", "if true {"}},
		caught: []suite{described}},
	{breaks: "keys: one that stands in a file is taken",
		edits:  []edit{{"internal/manifest/provider.go", "case !ok || strings.TrimSpace(name) != name || name == \"\":", "case !ok:\n\t\treturn Reference{Kind: \"env\", Name: s}, true\n\tcase strings.TrimSpace(name) != name || name == \"\":"}},
		caught: []suite{{"./internal/manifest", "TestAKeyInAFileIsRefused"}}},
	{breaks: "keys: a header field with a secret stands in a file",
		edits:  []edit{{"internal/manifest/provider.go", "if secretHeader(h.Name) {", "if false {"}},
		caught: []suite{{"./internal/manifest", "TestAKeyInAFileIsRefused"}}},
	{breaks: "keys: one is used before it is hidden",
		edits:  []edit{{"internal/cli/keys.go", "\ta.secrets().Add(name, value)\n", ""}},
		caught: []suite{vendors}},
	{breaks: "keys: half of one stays where a text was cut",
		edits:  []edit{{"internal/model/wire/wire.go", "\tif e.Scrub != nil {\n\t\ts = e.Scrub(s)\n\t}\n\tif len(e.Key) >= minKey {\n\t\ts = strings.ReplaceAll(s, e.Key, \"[key]\")\n\t}\n", ""}},
		caught: []suite{{"./internal/model/wire", "TestHalfAKey"}}},
	{breaks: "keys: arguments of a call are kept as they came",
		edits:  []edit{{"internal/engine/answercalls.go", "c.Args = string(a.v.e.c.Secrets.Args([]byte(strings.ToValidUTF8(c.Args, \"\\uFFFD\")), a.v.e.c.ArgsKey))", "c.Args = strings.ToValidUTF8(c.Args, \"\\uFFFD\")"}},
		caught: []suite{plants}},
	{breaks: "keys: a title is cut before it is cleaned",
		edits:  []edit{{"internal/cli/run.go", "short(strings.TrimSpace(a.secrets().String(title)), 80)", "short(strings.TrimSpace(title), 80)"}},
		caught: []suite{plants}},
	{breaks: "keys: nobody knows them in hexadecimal",
		edits:  []edit{{"internal/secret/spellings.go", "all = append(all, small, strings.ToUpper(small))", "_ = small"}},
		caught: []suite{plants}},
	{breaks: "keys: changes at once don't wait for each other",
		edits:  []edit{{"internal/vault/lock.go", "if err == nil {\n\t\t\treturn func()", "if true {\n\t\t\treturn func()"}},
		caught: []suite{vaults}},
	{breaks: "keys: secrets that others may read are taken",
		edits:  []edit{{"internal/vault/vault.go", "if info.Mode().Perm()&0o077 != 0 {", "if false {"}},
		caught: []suite{vaults}},
}
