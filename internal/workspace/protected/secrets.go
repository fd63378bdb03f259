package protected

import (
	"path"
	"slices"
	"strings"
)

// secretPlaces are the ends of paths, or their last folders, where keys are kept,
// in the form of Entry.Name. Source: the default paths of the programs that keep
// them.
var secretPlaces = of(
	"is where keys are kept",
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".docker/config.json", ".dockercfg", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/rclone", ".config/doppler",
	".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".vault-token", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".composer/auth.json", ".codex/auth.json", ".claude/.credentials.json", ".gemini/oauth_creds.json", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
	".bash_history", ".zsh_history",
)

var secretList = index(secretPlaces)

// keyFiles are names of files that are keys, and secretFiles of those that hold
// other secrets, unless they are code.
var (
	keyFiles    = of("is a key", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*")
	secretFiles = of("usually holds secrets", "*.env", "*.tfstate", "*.tfstate.backup", "*.tfvars", "*.tfvars.json", "*.secret", "*.secrets", "credentials", "credentials.json", "credentials.toml", "credentials.y*", ".credentials",
		"client_secret*", "service-account*", "service_account*", "serviceaccount*", "application_default_credentials.json", "secrets.*", ".htpasswd")
)

// spelledOut are the names that begin with a dot and have no pattern, .env first.
var spelledOut = func() []string {
	out := []string{".env"}
	for _, e := range secretPlaces {
		if e.Name[0] == '.' && !strings.Contains(e.Name, "*") {
			out = append(out, e.Name)
		}
	}
	return out
}()

// SecretNames are the names of secrets that begin with a dot, for who holds a
// pattern against them. They must not be changed.
func SecretNames() []string { return spelledOut }

// Secret returns why a path is one that usually holds a secret, or nothing. Like Of
// it reads the path as text and without regard to case. What is written to be
// read, such as .env.example and public keys, files of code and prose, and the
// keys in folders of test data are none.
func Secret(p string) string {
	name := fold(path.Base(p))
	if p == "" || len(p) > 4096 || template(name) || strings.HasSuffix(name, ".pub") || name == "known_hosts" {
		return ""
	}
	if e, ok := find(p, secretList); ok {
		return e.Why
	}
	if e, ok := named(name, keyFiles); ok {
		if below(p, "testdata", "fixtures", "__fixtures__") {
			return ""
		}
		return e.Why
	}
	switch e, ok := named(name, secretFiles); {
	case code(name):
		return ""
	case ok:
		return e.Why
	case dotEnv(name):
		return "usually holds secrets"
	case below(p, "secrets", ".secrets") && name != "":
		return "lies in a folder of secrets"
	}
	return ""
}

// SecretPlace reports whether a path is a folder, or a file, of those that hold
// nothing but keys.
func SecretPlace(p string) bool {
	_, ok := find(p, secretList)
	return ok
}

func named(name string, among []Entry) (Entry, bool) {
	i := slices.IndexFunc(among, func(e Entry) bool { return like(e.Name, name) })
	if i < 0 {
		return Entry{}, false
	}
	return among[i], true
}

// dotEnv reports whether a name is .env, or that with an ending of its own, such as
// .env.local or .env~. The settings of direnv, .envrc, are a protected name.
func dotEnv(name string) bool {
	rest, ok := strings.CutPrefix(name, ".env")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".-_~*?[ ")) && !code(name)
}

// template reports whether a name says that the file shows what another one looks
// like.
func template(name string) bool {
	for _, word := range []string{"example", "sample", "template", "tmpl", "tpl", "dist", "defaults", "schema"} {
		if strings.HasSuffix(name, "."+word) || strings.HasPrefix(name, word+".env") || strings.HasPrefix(name, ".env."+word) {
			return true
		}
	}
	return false
}

// below reports whether a path lies in a folder of one of the names.
func below(p string, names ...string) bool {
	parts := strings.Split(path.Dir(path.Clean(p)), "/")
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(names, fold(part)) })
}

// codeEndings are those of files that people write for people and compilers.
var codeEndings = []string{
	".go", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".py", ".pyi", ".rb", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".java", ".kt", ".scala", ".swift", ".cs", ".fs", ".php", ".ex", ".exs", ".erl",
	".hs", ".ml", ".lua", ".dart", ".zig", ".sh", ".bash", ".fish", ".ps1", ".sql", ".proto", ".graphql", ".tf", ".md", ".mdx", ".rst", ".adoc", ".html", ".css", ".scss", ".svg", ".png", ".gitignore", ".gitkeep",
}

// code reports whether a file of a name is code or prose.
func code(name string) bool {
	return slices.ContainsFunc(codeEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}
