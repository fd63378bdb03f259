package secrets

import "strings"

// Lookalikes are texts of which nothing may be taken out: placeholders, hashes,
// identifiers, lock files, public keys, code and documentation.
func Lookalikes() []string {
	return append(strings.Split(strings.TrimSpace(lookalikes), "\n"), publicKey, certificate, fingerprints)
}

const publicKey = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo
4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u
-----END PUBLIC KEY-----`

const certificate = `-----BEGIN CERTIFICATE-----
MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ
RTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQLEwpDeWJlclRydXN0MSIwIAYD
-----END CERTIFICATE-----`

const fingerprints = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl user@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7vbqajDRz1pOxJ5kNr2mV3qYgCwzQ5sVfBGL8rZ9a7uJbYd
SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 github.com (RSA)`

const lookalikes = `
"by":"token:tok_01a20a6b-aa7d-7784-b15c-8985250c2ef6"
550e8400-e29b-41d4-a716-446655440000
token: 550e8400-e29b-41d4-a716-446655440000
commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad
index 83db48f..bf2a9c1 100644
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
d41d8cd98f00b204e9800998ecf8427e  empty.txt
"integrity": "sha512-Kb9rVpGxgFVJ3sKF6nZ1rS0VbAjLOJ9NNMj8Y1sVKx4i4k3M2vD9WqXg0F4nJkYt0l8mGgZ1hQhXxYw7bQmE5A=="
github.com/google/go-cmp v0.7.0 h1:wk8382ETsv4JYUZwIsn6YpYiWiBsYLSJiTsuBvmbtMQ=
resolved "https://registry.yarnpkg.com/left-pad/-/left-pad-1.3.0.tgz#5b8a3a7765dfe001261dde915589e782f8c94d1e"
checksum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"max_tokens": 4096,
max_tokens=32768
"prompt_tokens":12345,"completion_tokens":678
tokenizer: "cl100k_base"
token_type: "Bearer"
token_url: https://login.example.com/oauth2/v1/token
"token_endpoint":"https://idp.example.com/v2/token"
PASSWORD_FILE=/run/secrets/db_password
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=changeme
DB_PASSWORD=<your password here>
API_KEY=your-api-key-here
OPENAI_API_KEY=sk-...
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
aws_access_key_id = AKIAIOSFODNN7EXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
password = os.environ["DB_PASSWORD"]
password: process.env.DB_PASSWORD1,
const token = getToken(user2, options)
token := parser.next()
let token: Token = lexer.peek();
secret: config.get("service.secret2")
private String password;
func login(user, password string) error {
password: string;
if password == "" { return errPassword }
this.password = this.form.password1.value
<input type="password" name="password" id="password1">
<label for="password">Password</label>
"password": "Passwort",
"Password": {"type": "string", "minLength": 12}
password_hash_algorithm: argon2id
secretName: wildcard-tls-secret-2024
secretKeyRef: {name: db-credentials-v2, key: password}
cache_key=v1-linux-amd64-go1.26.1
CACHE_KEY=node-modules-v3-abc123def456
PRIMARY_KEY=user_id_2024
public_key: age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kdl8l3qsqz0x7vp
partition_key = tenant2/2024-11-21
nextPageToken: CAUQAA1234567890
https://user@example.com/path
https://example.com:8443/a:b@c
postgres://user:password@localhost:5432/db
postgres://app:${PGPASSWORD}@db/app
redis://localhost:6379/0
ssh://git@github.com:22/belay-run/belay.git
http://[::1]:8080/x@y
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
-H "Authorization: Bearer ${GITHUB_TOKEN}"
Authorization: required for all requests
bearer of the certificate
curl -u user:password https://example.com
Cookie: theme=dark
cookies: accept-all
set-cookie: lang=en; Path=/
eyJ is how base64 of JSON begins
eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
sk-learn and scikit-learn are the same
class="sk-cube-grid sk-circle-fade-dot-bounce-wave"
--token TOKEN          the token to use
--password-stdin
mysqldump --password=$PASS app
--api-key-file=/etc/keys/service-key-2024
docker run -e PASSWORD -e TOKEN image
pattern matches path parts per package
key-value store with key-0123 prefixes
re_compile_fastmap and re_search
SG.UI.Components.Button2
xoxb is the prefix of bot tokens
ghp_ tokens have 40 characters
npm_config_registry=https://registry.example.org/
npm_package_dependencies_typescript_version_5
hf_hub_download(repo_id="org/model-7b", filename="config.json")
pa-thological cases of the pa-rser are pa-rt of this
-----BEGIN PRIVATE KEY----- marks the beginning, and the lines of base64 follow it
/home/user/.ssh/id_ed25519
glpat- is the prefix of personal access tokens
01ARZ3NDEKTSV4RRFFQ69G5FAV
turn_06f3k2v9q8x7w6r5t4s3p2m1n0
call_toolu_01A09q90qw90lq917835lq9
arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf
vault:secret/data/prod/db#password
[redacted:github-token:0123456789abcdef]
password=[redacted:assignment:0123456789abcdef]
TOKEN_EXPIRES=2026-11-23T20:00:00Z
csrf_token_header: X-CSRF-Token-2
100%25 of %2Fpath%2Fto%2Ffile%20name
\x1b[31mred\x1b[0m and \u001b[32mgreen\u001b[0m
`
