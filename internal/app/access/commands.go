// Package access has the use cases about what is let in: tokens by which callers are
// known, and files of workspaces that count only when a person trusts them as they are.
// It promises that the text of a token is in the answer that made it, and nowhere else,
// and that trust is given to the content that was seen, and to no other.
package access

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature. Tokens are the process's, so only the owner of
// the default tenant may.
func Commands() []app.Command {
	return []app.Command{
		app.Define("create_token", auth.Admin, true, "Make a token; its text is in this answer and nowhere else.", IssueToken),
		app.Define("list_tokens", auth.Admin, false, "List the tokens and what they allow.", Tokens),
		app.Define("revoke_token", auth.Admin, true, "Revoke a token, from the next request on.", WithdrawToken),
		app.DefineLook("list_audit", auth.Admin, "List what callers asked for and what came of it, the newest first: commands, and refused reads.", listAudit),
		app.Define("sign_out", auth.Read, true, "Make the token worthless that this is asked with.", SignOut),
		app.DefineLook("list_trust", auth.Read, "List the trusted files, and those of a workspace that count only when they are trusted.", listTrust),
		app.Define("trust_file", auth.Own, true, "Trust a file of a workspace with the content that was seen: what it declares counts from the next turn on.", trustFile),
		app.Define("revoke_trust", auth.Own, true, "Take trust in a file back.", Distrust),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "getCaller", Path: "/v1/caller", Tag: "reads", Doc: "Show who asks: the token, its role, and what that may do."}, caller),
	}
}
