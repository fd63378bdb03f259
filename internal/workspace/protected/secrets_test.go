package protected

import "testing"

// Guarantee: G72.
func TestSecretsAreKnownByTheirNames(t *testing.T) {
	for _, p := range []string{
		".env", "a/.env", ".ENV", ".env.local", ".env.production", ".env-prod", ".env~", ".env.bak", "config/prod.env", "/home/u/.ssh/id_rsa", "~/.AWS/credentials", "id_ed25519", "keys/id_rsa.old", "server.key", "a/b/tls.PEM",
		".netrc", "_netrc", ".npmrc", "pkg/.npmrc", ".pypirc", ".git-credentials", ".docker/config.json", "/home/u/.docker/config.json", ".kube/config", "/home/u/.config/gcloud/x.db", ".azure/accessTokens.json", "terraform.tfstate",
		"infra/terraform.tfstate.backup", "prod.tfvars", "secrets/db_password", "deploy/secrets/prod.yaml", "secrets/a/b.json", "secrets.yaml", "service-account.json", "service-account-prod.json", "credentials.json", "/home/u/.ssh", "vault.kdbx",
		"x.p12", ".env*", "/ws/.env", "client_secret_1.apps.json", ".cargo/credentials.toml", ".codex/auth.json", ".vault-token", ".ssh/config", "testdata/.env",
	} {
		if Secret(p) == "" {
			t.Errorf("%q isn't known to hold a secret", p)
		}
	}
	for _, p := range []string{
		"", ".", "/", ".env.example", "a/.env.sample", ".env.template", ".env.dist", ".env.local.example", "example.env", ".envrc", ".environment", "env", "id_rsa.pub", "/home/u/.ssh/id_rsa.pub", ".ssh/known_hosts", "main.go", "environment.md",
		"keys.go", "internal/secrets/vault.go", "src/secrets/index.ts", "secrets", "src/secrets", "secrets.go", "secrets.py", "secretsmanager/x.json", "docs/secrets.md", "credentials.go", "keyboard.json", "monkey", "package.json", ".docker/Dockerfile", "src/service-account.ts", ".env/bin/activate", "tls/testdata/server.key", "fixtures/ca.pem", "prod.env/readme", "secrets/",
	} {
		if why := Secret(p); why != "" {
			t.Errorf("%q: %s", p, why)
		}
	}
}
