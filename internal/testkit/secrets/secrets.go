// Package secrets has texts with secrets in them, and texts that look as if they
// had. No secret is real: each is made when it is asked for, from its vendor's
// prefix and characters of a generator, so that no scanner finds one in the source.
package secrets

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
)

// Case is a text with a secret.
type Case struct {
	Form  string // that it is known by
	Text  string // with the secret in it
	Value string // what must not be left
}

const (
	small   = "abcdefghijklmnopqrstuvwxyz"
	letters = small + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	figures = "0123456789"
	alnum   = letters + figures
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + figures
	base32  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hex     = "0123456789abcdef"
	url64   = alnum + "-_"
	std64   = alnum + "+/"
)

// maker makes the same texts every time.
type maker struct{ r *rand.Rand }

func (m maker) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.r.IntN(len(alphabet))]
	}
	// Of each kind there is one, as in keys of some length.
	for i, kind := range []string{small, figures} {
		if n > 8 && strings.ContainsAny(alphabet, kind) && !strings.ContainsAny(string(b), kind) {
			b[2+i] = kind[m.r.IntN(min(6, len(kind)))]
		}
	}
	return string(b)
}

// All are the secrets.
func All() []Case {
	m := maker{rand.New(rand.NewPCG(1, 2))}
	var all []Case
	add := func(form, text string, value ...string) {
		c := Case{form, text, text}
		if len(value) > 0 {
			c.Value = value[0]
			c.Text = strings.ReplaceAll(text, "§", c.Value)
		}
		all = append(all, c)
	}
	for _, v := range m.vendors() {
		add(v.Form, v.Text)
	}
	m.structured(add)
	m.named(add)
	m.wrapped(add)
	return all
}

// vendors are tokens with a vendor's prefix.
func (m maker) vendors() []Case {
	return []Case{
		{Form: "aws-access-key", Text: "AKIA" + m.of(base32, 16)},
		{Form: "aws-access-key", Text: "ASIA" + m.of(base32, 16)},
		{Form: "aws-bedrock-key", Text: "ABSK" + m.of(std64, 128)},
		{Form: "google-key", Text: "AIza" + m.of(alnum, 35)},
		{Form: "google-key", Text: "GOCSPX-" + m.of(alnum, 28)},
		{Form: "google-key", Text: "ya29." + m.of(url64, 60)},
		{Form: "cloud-key", Text: "dop_v1_" + m.of(hex, 64)},
		{Form: "cloud-key", Text: "LTAI" + m.of(alnum, 20)},
		{Form: "cloud-key", Text: "AKID" + m.of(alnum, 32)},
		{Form: "cloud-key", Text: "HRKU-AA" + m.of(alnum, 58)},
		{Form: "cloud-key", Text: "fm2_" + m.of(alnum, 60)},
		{Form: "cloud-key", Text: "tskey-auth-" + m.of(alnum, 12) + "-" + m.of(alnum, 32)},
		{Form: "cloud-key", Text: "pul-" + m.of(hex, 40)},
		{Form: "cloud-key", Text: "dapi" + m.of(hex, 32)},
		{Form: "github-token", Text: "ghp_" + m.of(alnum, 36)},
		{Form: "github-token", Text: "ghs_" + m.of(alnum, 36)},
		{Form: "github-token", Text: "github_pat_" + m.of(alnum, 22) + "_" + m.of(alnum, 59)},
		{Form: "gitlab-token", Text: "glpat-" + m.of(alnum, 20)},
		{Form: "gitlab-token", Text: "gldt-" + m.of(alnum, 20)},
		{Form: "atlassian-token", Text: "ATATT3" + m.of(url64, 186)},
		{Form: "anthropic-key", Text: "sk-ant-api03-" + m.of(url64, 93) + "AA"},
		{Form: "openai-key", Text: "sk-proj-" + m.of(url64, 74) + "T3BlbkFJ" + m.of(url64, 74)},
		{Form: "model-key", Text: "sk-" + m.of(alnum, 20) + "T3BlbkFJ" + m.of(alnum, 20)},
		{Form: "model-key", Text: "sk-or-v1-" + m.of(hex, 64)},
		{Form: "model-key", Text: "sk-" + m.of(hex, 32)},
		{Form: "model-key", Text: "gsk_" + m.of(alnum, 52)},
		{Form: "model-key", Text: "xai-" + m.of(alnum, 80)},
		{Form: "model-key", Text: "hf_" + m.of(letters, 34)},
		{Form: "model-key", Text: "r8_" + m.of(alnum, 37)},
		{Form: "model-key", Text: "pplx-" + m.of(alnum, 48)},
		{Form: "model-key", Text: "nvapi-" + m.of(alnum, 64)},
		{Form: "model-key", Text: "tvly-dev-" + m.of(alnum, 32)},
		{Form: "package-token", Text: "npm_" + m.of(alnum, 36)},
		{Form: "package-token", Text: "pypi-AgEIcHlwaS5vcmc" + m.of(alnum, 60)},
		{Form: "package-token", Text: "rubygems_" + m.of(hex, 48)},
		{Form: "package-token", Text: "cio" + m.of(alnum, 32)},
		{Form: "package-token", Text: "oy2" + m.of(small+figures, 43)},
		{Form: "package-token", Text: "dckr_pat_" + m.of(alnum, 27)},
		{Form: "slack-token", Text: "xoxb-" + m.of(figures, 12) + "-" + m.of(figures, 12) + "-" + m.of(alnum, 24)},
		{Form: "slack-token", Text: "xapp-1-A" + m.of(capital, 10) + "-" + m.of(figures, 13) + "-" + m.of(hex, 64)},
		{Form: "mail-key", Text: "SG." + m.of(alnum, 22) + "." + m.of(alnum, 43)},
		{Form: "mail-key", Text: "key-" + m.of(hex, 32)},
		{Form: "mail-key", Text: "xkeysib-" + m.of(hex, 64) + "-" + m.of(alnum, 16)},
		{Form: "twilio-key", Text: "SK" + m.of(hex, 32)},
		{Form: "stripe-key", Text: "sk_live_" + m.of(alnum, 24)},
		{Form: "stripe-key", Text: "rk_live_" + m.of(alnum, 99)},
		{Form: "stripe-key", Text: "whsec_" + m.of(alnum, 32)},
		{Form: "payment-key", Text: "sq0csp-" + m.of(alnum, 43)},
		{Form: "payment-key", Text: "rzp_live_" + m.of(alnum, 14)},
		{Form: "shopify-token", Text: "shpat_" + m.of(hex, 32)},
		{Form: "vault-token", Text: "hvs." + m.of(alnum, 90)},
		{Form: "vault-token", Text: "dp.pt." + m.of(alnum, 43)},
		{Form: "monitoring-key", Text: "glsa_" + m.of(alnum, 32) + "_" + m.of(hex, 8)},
		{Form: "monitoring-key", Text: "NRAK-" + m.of(capital, 27)},
		{Form: "monitoring-key", Text: "dt0c01." + m.of(capital, 24) + "." + m.of(capital, 64)},
		{Form: "service-token", Text: "lin_api_" + m.of(alnum, 40)},
		{Form: "service-token", Text: "ntn_" + m.of(alnum, 46)},
		{Form: "service-token", Text: "PMAK-" + m.of(hex, 24) + "-" + m.of(hex, 34)},
		{Form: "service-token", Text: "figd_" + m.of(alnum, 40)},
		{Form: "service-token", Text: "sbp_" + m.of(hex, 40)},
		{Form: "age-key", Text: "AGE-SECRET-KEY-1" + m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
	}
}

func (m maker) jwt() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"`+m.of(figures, 10)+`","exp":1900000000}`) + "." + m.of(url64, 43)
}

func (m maker) lines(first string, n int, end string) string {
	all := []string{first + m.of(std64, 64-len(first))}
	for range n {
		all = append(all, m.of(std64, 64))
	}
	return strings.Join(append(all, m.of(std64, 22)+"=="), end)
}

// structured are secrets with a form of their own.
func (m maker) structured(add func(form, text string, value ...string)) {
	add("private-key", "-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----\n", m.lines("MIIEpAIBAAKCAQEA", 2, "\n"))
	add("private-key", "-----BEGIN PRIVATE KEY-----\r\n§\r\n-----END PRIVATE KEY-----", m.lines("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 2, "\r\n"))
	add("private-key", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\n§\n-----END PRIVATE KEY-----\n"}`, m.lines("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 2, `\n`))
	add("private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\n§", m.lines("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", 3, "\n"))
	add("private-key", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"+m.of(hex, 32)+"\n\n§\n-----END EC PRIVATE KEY-----", m.lines("", 2, "\n"))
	add("private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n§\n-----END PGP PRIVATE KEY BLOCK-----", m.lines("lQOYBF", 2, "\n"))
	add("private-key", "tail of it:\n§", m.lines("MHcCAQEEIB", 1, "\n"))
	add("private-key", "  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n    §\n    -----END PRIVATE KEY-----", m.lines("MIGHAgEAMBMGByqGSM49AgEGCCqGSM49", 1, "\n    "))
	add("jwt", "token "+"§ is old", m.jwt())
	add("jwt", "https://h/?access=§&x=1", m.jwt())
	add("password-hash", "root:§:19000:0:99999:7:::", "$6$"+m.of(alnum, 16)+"$"+m.of(alnum, 86))
	add("password-hash", "admin:§", "$2y$10$"+m.of(alnum, 53))
	add("password-hash", "hash = §", "$argon2id$v=19$m=65536,t=3,p=4$"+m.of(alnum, 22)+"$"+m.of(alnum, 43))
	add("password-hash", "§", "pbkdf2_sha256$600000$"+m.of(alnum, 22)+"$"+m.of(alnum, 43)+"=")
	add("webhook", "https://hooks.slack.com/services/§", "T"+m.of(capital, 8)+"/B"+m.of(capital, 8)+"/"+m.of(alnum, 24))
	add("webhook", "https://discord.com/api/webhooks/"+m.of(figures, 18)+"/§", m.of(url64, 68))
	add("telegram-token", "bot"+m.of(figures, 10)+":§/getMe", "AA"+m.of(alnum, 33))
	add("azure-key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=§;EndpointSuffix=core.windows.net", m.of(std64, 86)+"==")
	add("azure-key", "https://x.blob.core.windows.net/c?sv=2022-11-02&sig=§", m.of(alnum, 43)+"%3D")
}

// named are secrets that are known by what stands before them.
func (m maker) named(add func(form, text string, value ...string)) {
	add("url-password", "postgres://app:§@db.internal:5432/app", m.of(alnum, 14))
	add("url-password", "redis://:§@10.0.0.5:6379/0", m.of(alnum, 20))
	add("url-password", "git clone https://oauth2:§@git.internal/x.git", m.of(alnum, 20))
	add("authorization", "curl -H 'Authorization: Bearer §' https://h/", m.of(alnum, 40))
	add("authorization", "Authorization: Basic §", base64.StdEncoding.EncodeToString([]byte("user:"+m.of(alnum, 14))))
	add("authorization", `{"headers":{"Authorization":"token §"}}`, m.of(alnum, 40))
	add("authorization", "curl -s -u deploy:§ https://h/", m.of(alnum, 14))
	add("authorization", "sshpass -p '§' ssh host", m.of(alnum, 12))
	add("authorization", `{"auths":{"registry.internal":{"auth":"§"}}}`, base64.StdEncoding.EncodeToString([]byte("robot:"+m.of(alnum, 20))))
	add("cookie", "Cookie: session=§; theme=dark", m.of(alnum, 32))
	add("cookie", "Set-Cookie: sid=§; Path=/; HttpOnly", m.of(hex, 32))
	add("flag", "mysqldump --password=§ app", m.of(alnum, 14))
	add("flag", "tool --api-key § run", m.of(alnum, 24))
	add("flag", "machine h login me password §", m.of(alnum, 14))
	add("assignment", "DB_PASSWORD=§", m.of(alnum, 14)+"!")
	add("assignment", "export AWS_SECRET_ACCESS_KEY=§", m.of(std64, 40))
	add("assignment", "PAYMENTS_API_KEY=§\nDEBUG=1", m.of(hex, 32))
	add("assignment", "SECRET_KEY_BASE=§", m.of(hex, 128))
	add("assignment", `{"user":"app","password":"§"}`, m.of(alnum, 12)+"#")
	add("assignment", `{"client_secret": "§"}`, m.of(alnum, 36))
	add("assignment", "database:\n  user: app\n  password: §\n", m.of(alnum, 16))
	add("assignment", "aws_secret_access_key = §", m.of(std64, 40))
	add("assignment", `const apiKey = "§";`, m.of(alnum, 32))
	add("assignment", "password: str = '§'", m.of(alnum, 12)+"!")
	add("assignment", "//registry.internal/:_authToken=§", m.of(alnum, 36))
	add("assignment", "<password>§</password>", m.of(alnum, 14))
	add("assignment", `'secret' => '§',`, m.of(alnum, 24))
	add("assignment", `{\"token\":\"§\"}`, m.of(alnum, 30))
}

// wrapped are secrets that are written in other ways.
func (m maker) wrapped(add func(form, text string, value ...string)) {
	colour := func(s string) string {
		return s[:3] + "\x1b[31m" + s[3:9] + "\x1b[0m" + s[9:]
	}
	percent := func(s string) string {
		return strings.NewReplacer("_", "%5F", "-", "%2d", "a", "%61", "G", "%47").Replace(s)
	}
	wrap := func(s string) string {
		var b strings.Builder
		for len(s) > 76 {
			b.WriteString(s[:76] + "\n")
			s = s[76:]
		}
		return b.String() + s
	}
	add("github-token", "§", colour("ghp_"+m.of(alnum, 36)))
	add("github-token", "x=§&y=1", percent("ghp_"+m.of(alnum, 36)))
	add("stripe-key", `"key \u0073k_live_§"`, m.of(alnum, 24))
	add("github-token", `\u001b[1m\u001b[32m§\u001b[0m`, "ghp_"+m.of(alnum, 36))
	add("github-token", "§", base64.StdEncoding.EncodeToString([]byte("ghp_"+m.of(alnum, 36))))
	add("assignment", "data: §", base64.StdEncoding.EncodeToString([]byte("DB_PASSWORD="+m.of(alnum, 16)+"\n")))
	lines := wrap(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("region= eu-west ", 3) + "AKIA" + m.of(base32, 16) + " and more text that says nothing at all")))
	add("aws-access-key", lines, lines[72:85])
	file := base64.StdEncoding.EncodeToString([]byte("-----BEGIN RSA PRIVATE KEY-----\n" + m.lines("MIIEpAIBAAKCAQEA", 3, "\n") + "\n-----END RSA PRIVATE KEY-----\n"))
	add("private-key", "client-key-data: "+file, file[80:200])
	add("model-key", "§", base64.URLEncoding.EncodeToString([]byte("k sk-"+m.of(alnum, 48))))
}
