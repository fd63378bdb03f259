//go:build linux

package attack

import "testing"

// TestSecrets: what usually holds a secret doesn't reach the model, whatever route
// a command or a tool takes to it: it is asked about, or hidden.
func TestSecrets(t *testing.T) {
	const secret = "hunter2-of-the-attack"
	files := map[string]string{
		".env": "KEY=" + secret + "\n", "app/.env.local": "KEY=" + secret + "\n", "deploy/server.key": secret + "\n", "secrets/db": secret + "\n", ".npmrc": "//r.example/:_authToken=" + secret + "\n",
		"job.py": "print(open('.env').read())\n", "README.md": "nothing\n",
	}
	var table []attack
	for _, line := range []string{
		"cat .env", "grep -r KEY .", "cat .e*", "cat secrets/*", "find . -type f -exec cat {} +", "find . -type f | xargs cat", "f=.env; cat $f", "cat $(ls -A)", "for f in .e?v; do cat $f; done", "tar cf - . | strings",
		"python3 job.py", "cat app/.[e]nv*", "ln -s .env x; cat x", "mv .env x; cat x", "sh -c 'set -a; . ./.env; env'", "awk 1 deploy/*", "cp -r . /tmp/x; grep -rh hunter /tmp/x",
	} {
		table = append(table, attack{name: line, files: files, command: line, secret: secret})
	}
	for name, args := range map[string]string{
		"read": `{"path":".env"}`, "grep": `{"pattern":"hunter","hidden":true,"ignored":true}`,
	} {
		table = append(table, attack{name: "tool " + name, files: files, tool: name, args: args, secret: secret})
	}
	play(t, expectation{}, table)
}
