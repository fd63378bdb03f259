package secret

import "strings"

// FromEnviron makes a scrubber of the values of those variables of an
// environment (NAME=value) whose names say that they are secret.
func FromEnviron(environ []string) *Scrubber {
	s := &Scrubber{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && IsName(name) {
			s.Add(name, value)
		}
	}
	return s
}

// IsName reports whether a variable of this name holds a secret by convention.
func IsName(name string) bool {
	n := strings.ToUpper(name)
	for _, end := range [...]string{"_API_KEY", "_APIKEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD",
		"_PASSPHRASE", "_SECRET_KEY", "_PRIVATE_KEY", "_ACCESS_KEY", "_CREDENTIALS_JSON"} {
		if strings.HasSuffix(n, end) {
			return true
		}
	}
	switch n {
	// What vendors and tools call their keys without one of the endings.
	case "API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH",
		"OPENAI_KEY", "ANTHROPIC_KEY", "GEMINI_KEY", "AZURE_OPENAI_KEY", "OPENROUTER_KEY", "MISTRAL_KEY", "GROQ_KEY",
		"DEEPSEEK_KEY", "GITHUB_PAT", "GH_PAT", "AZURE_DEVOPS_EXT_PAT", "SSHPASS", "VAULT_UNSEAL_KEY", "NPM_CONFIG__AUTH":
		return true
	}
	return false
}
