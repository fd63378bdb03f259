package protected

import (
	"path"
	"slices"
	"strings"
)

// secretNames are the ends of paths, or their last folders, that usually hold a
// secret, in the form of Entry.Name. Source: the default paths of the programs
// that keep keys, and what advisories about leaked keys name.
var secretNames = slices.Concat(of(
	"is where keys are kept",
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".docker/config.json", ".dockercfg", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/rclone", ".config/doppler",
	".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".vault-token", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".composer/auth.json", ".codex/auth.json", ".claude/.credentials.json", ".gemini/oauth_creds.json", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
	".bash_history", ".zsh_history",
), of(
	"is a key",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
), of(
	"usually holds secrets",
	"*.env", "*.tfstate", "*.tfstate.backup", "*.tfvars", "*.tfvars.json", "*.secret", "*.secrets", "credentials", "credentials.json", "credentials.toml", "credentials.y*", ".credentials", "client_secret*",
	"service-account*", "service_account*", "serviceaccount*", "application_default_credentials.json", "secrets.*", ".htpasswd",
))

// spelledOut are the names that begin with a dot and have no pattern, .env first.
var spelledOut = func() []string {
	out := []string{".env"}
	for _, e := range secretNames {
		if e.Name[0] == '.' && !strings.Contains(e.Name, "*") {
			out = append(out, e.Name)
		}
	}
	return out
}()

// SecretNames are the names of secrets that begin with a dot, for who holds a
// pattern against them. They must not be changed.
func SecretNames() []string { return spelledOut }

// Secret says why a path is one that usually holds a secret, or nothing. Like Of
// it reads the path as text and without regard to case. What is written to be
// read, such as .env.example and public keys, and files of code and prose are
// none, whatever they are called.
func Secret(p string) string {
	name := fold(path.Base(p))
	switch {
	case p == "" || len(p) > 4096 || template(name) || strings.HasSuffix(name, ".pub") || name == "known_hosts":
		return ""
	case dotEnv(name):
		return "usually holds secrets"
	}
	e, ok := find(p, secretNames)
	if !ok && inSecrets(p) {
		e, ok = Entry{Why: "lies in a folder of secrets"}, true
	}
	if !ok || e.Why != "is where keys are kept" && e.Why != "is a key" && code(name) {
		return ""
	}
	return e.Why
}

// dotEnv tells whether a name is .env, or that with an ending of its own, such as
// .env.local or .env~. The settings of direnv, .envrc, are a protected name.
func dotEnv(name string) bool {
	rest, ok := strings.CutPrefix(name, ".env")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".-_~*?[ ")) && !code(name)
}

// template tells whether a name says that the file shows what another one looks
// like.
func template(name string) bool {
	for _, word := range []string{"example", "sample", "template", "tmpl", "tpl", "dist", "defaults", "schema"} {
		if strings.HasSuffix(name, "."+word) || strings.HasPrefix(name, word+".env") || strings.HasPrefix(name, ".env."+word) {
			return true
		}
	}
	return false
}

// inSecrets tells whether a file lies below a folder secrets.
func inSecrets(p string) bool {
	parts := strings.Split(path.Dir(path.Clean(p)), "/")
	return slices.ContainsFunc(parts, func(part string) bool { part = fold(part); return part == "secrets" || part == ".secrets" }) && path.Base(p) != "."
}

// codeEndings are those of files that people write for people and compilers.
var codeEndings = []string{
	".go", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".py", ".pyi", ".rb", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".java", ".kt", ".scala", ".swift", ".cs", ".fs", ".php", ".ex", ".exs", ".erl",
	".hs", ".ml", ".lua", ".dart", ".zig", ".sh", ".bash", ".fish", ".ps1", ".sql", ".proto", ".graphql", ".tf", ".md", ".mdx", ".rst", ".adoc", ".html", ".css", ".scss", ".svg", ".png", ".gitignore", ".gitkeep",
}

// code tells whether a file of a name is code or prose.
func code(name string) bool {
	return slices.ContainsFunc(codeEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}
