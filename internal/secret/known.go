package secret

import (
	"bytes"
	"cmp"
	"regexp/syntax"
	"strings"
	"sync"
)

// known is a form in which vendors and programs write secrets. expr matches from
// one of the keys on, which are in small letters and stand for both kinds; its
// group, or all of it, is the value.
type known struct {
	name  string
	keys  string // separated by blanks; of three characters at least
	expr  string
	after bool                                   // expr begins behind the key, which is all of a name
	check func(before, match, value []byte) bool // reports whether it is a secret after all; nil: it is
	most  int                                    // bytes of a match; 0 is 512

	once sync.Once
	prog *program
}

const (
	mostBytes = 512 // of a match, where a form says nothing
	// around is what is looked at before a key.
	around = 64
)

// A private key is lines of base64, as they are, quoted, indented, numbered, with
// escaped ends or the signs of a diff. The last one may be short.
const (
	between = `(?:[\s>|"',;+]|\n-|\\+[nrt\n]|\d{1,5}[:\t|-]){0,40}`
	body    = `[A-Za-z0-9+/=]{16,}(?:` + between + `[A-Za-z0-9+/=]{16,})*`
	ended   = `(?:` + between + `[A-Za-z0-9+/]{1,15}={1,2})?`
)

// names are what secrets are called in assignments, flags and fields.
const names = `password passwd passphrase passcode pass pwd secret token credential credentials auth ` +
	`api_key api-key apikey access_key access-key accesskey account_key account-key accountkey private_key private-key privatekey ` +
	`encryption_key encryption-key encryptionkey encrypt_key signing_key signing-key signingkey sign_key master_key master-key masterkey ` +
	`auth_key auth-key authkey license_key license-key licensekey`

// forms is the table of known forms. Of several that overlap the first names it.
// A vendor's prefix is enough: no checksum acquits it.
var forms = []known{
	{name: "private-key", keys: "-----begin", most: 32 << 10, expr: `-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----` +
		`(?:` + between + `(?:Proc-Type|DEK-Info|Version|Comment|Hash)\\{0,2}: [^\r\n\\]{0,80}(?:[\r\n]|\\+[rn]))*` + between +
		`(?:(` + body + `(?:` + between + `[A-Za-z0-9+/=]{1,15})?)` + between + `-----END|(` + body + ended + `))`},
	{name: "private-key", keys: "mii mhc migh mig2 mihu mc4c b3blbnnzac1rzxktdje", most: 32 << 10, expr: `\b(?:MII[A-Za-z0-9+/]{3}IBADANB|MII[A-Za-z0-9+/]{3}IBAAKC|MHcCAQEEI|` +
		`MI(?:GH|G2|Hu)AgEAMB[AM]GByqGSM49|MC4CAQAwBQYDK2VwBCIEI|b3BlbnNzaC1rZXktdjE)` + body + ended},
	{name: "age-key", keys: "age-secret-key-1", expr: `(?i)\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}`},
	{name: "aws-access-key", keys: "akia asia abia acca a3t", expr: `\b(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}\b`, check: isOwn},
	{name: "aws-bedrock-key", keys: "absk bedrock-api-key-", expr: `\b(?:ABSK[A-Za-z0-9+/]{109,269}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{40,})`, most: 2 << 10},
	{name: "google-key", keys: "aiza gocspx- ya29. 1//0", expr: `\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,}|1//0[\w-]{40,})`, check: isOwn, most: 2 << 10},
	{name: "azure-key", keys: "accountkey= sharedaccesskey= ?sig= &sig=", expr: `(?i)(?:(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,90}={0,2})|[?&]sig=([A-Za-z0-9%+/_-]{40,90}(?:%3D|=)))`},
	{name: "cloud-key", keys: "doo_v1_ dop_v1_ dor_v1_ ltai akid hrku-aa fm1_ fm1r_ fm1a_ fm2_ fo1_ v1.0- tskey- pul- dapi scw ocid",
		expr: `\b(?:do[opr]_v1_[a-fA-F0-9]{64}|LTAI[A-Za-z0-9]{16,20}|AKID[A-Za-z0-9]{32}|HRKU-AA[\w-]{58}|fm[12][ar]?_[\w+/=-]{40,}|fo1_[\w-]{43}|` +
			`v1\.0-[a-f0-9]{24}-[a-f0-9]{146}|tskey-[a-z]{3,12}-\w{8,}-\w{16,}|pul-[a-f0-9]{40}|dapi[a-f0-9]{32}(?:-\d)?|SCW[A-Z0-9]{17})\b`, check: isOwn, most: 2 << 10},
	{name: "github-token", keys: "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", expr: `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})`, check: isOwn},
	{name: "gitlab-token", keys: "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- gr1348941", expr: `\b(?:GR1348941[\w-]{20}|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[\w.-]{20,})`, check: isOwn},
	{name: "atlassian-token", keys: "atatt3 atctt3 atbb", expr: `\b(?:AT[AC]TT3[\w=-]{60,}|ATBB[A-Za-z0-9]{32}\b)`},
	{name: "anthropic-key", keys: "sk-ant-", expr: `\bsk-ant-(?:[a-z]{2,10}\d\d-)?[\w-]{32,}`, check: isOwn},
	{name: "openai-key", keys: "sk-proj- sk-svcacct- sk-admin- sk-none- sess-", expr: `\b(?:sk-(?:proj|svcacct|admin|None)-[\w-]{20,}|sess-[A-Za-z0-9]{40})`, check: isOwn},
	{name: "model-key", keys: "sk- gsk_ xai- hf_ api_org_ r8_ pplx- nvapi- lsv2_ csk- tvly- fw_ pa-",
		expr: `\b(?:sk-(?:[a-z0-9]{1,12}-){0,3}[A-Za-z0-9_]{24,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|(?:hf|api_org)_[A-Za-z]{34,}|r8_[A-Za-z0-9]{37,}|` +
			`pplx-[A-Za-z0-9]{40,}|nvapi-[\w-]{60,}|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|csk-[a-z0-9]{40,}|tvly-(?:[a-z]{3,5}-)?[A-Za-z0-9]{20,}|fw_[A-Za-z0-9]{22,}|pa-[\w-]{40,})`, check: isMixed},
	{name: "package-token", keys: "npm_ pypi-age rubygems_ cio oy2 dckr_pat_ dckr_oat_ clojars_ akcp cmvmd",
		expr: `\b(?:npm_[A-Za-z0-9]{36}|pypi-AgE[\w-]{50,}|rubygems_[a-f0-9]{48}|cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}|dckr_[po]at_[\w-]{27,}|(?i:CLOJARS)_[A-Za-z0-9]{60}|` +
			`AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b`, check: isMixed},
	{name: "slack-token", keys: "xoxa xoxb xoxe xoxo xoxp xoxr xoxs xoxc xoxd xapp-", expr: `\b(?:xox[abcdeoprs](?:\.xox[bpBP])?-[A-Za-z0-9%/+-]{8,}|xapp-\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]{4,})`, check: isMixed},
	{name: "webhook", keys: "hooks.slack.com/ .com/api/webhooks/ webhook.office.com/", expr: `(?:hooks\.slack\.com/(?:services|workflows|triggers)/([\w+/]{30,})|` +
		`discord(?:app)?\.com/api/webhooks/\d+/([\w-]{60,})|\.com/api/webhooks/\d{15,}/([\w-]{60,})|webhook\.office\.com/webhookb2/([\w@/-]{60,}))`},
	{name: "telegram-token", keys: ":aa", expr: `:(AA[\w-]{33})(?:[^\w-]|$)`, check: func(before, _, _ []byte) bool { return endsWith(before, isDigit, 8, 11) }},
	{name: "mail-key", keys: "sg. key- xkeysib- re_ mlsn.", expr: `\b(?:SG\.[\w-]{16,32}\.[\w-]{30,64}|SG\.[\w=.-]{66}|key-[0-9a-f]{32}\b|xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|mlsn\.[a-f0-9]{64})`, check: isMixed},
	{name: "twilio-key", keys: "sk0 sk1 sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske skf", expr: `\bSK[0-9a-fA-F]{32}\b`, check: isMixed},
	{name: "stripe-key", keys: "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", expr: `\b(?:[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{24,})`, check: isOwn},
	{name: "payment-key", keys: "eaaa sq0atp- sq0csp- access_token$production$ rzp_live_ rzp_test_ flwseck ezak eztk sk_lmt_",
		expr: `\b(?:EAAA[\w-]{22,}|sq0(?:atp|csp)-[\w-]{22,}|access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}|rzp_(?:live|test)_[A-Za-z0-9]{14,}|FLWSECK(?:_TEST|_LIVE)?-[A-Za-z0-9]{12,}-[Xx]|EZ[AT]K[A-Za-z0-9]{54})`},
	{name: "shopify-token", keys: "shpat_ shpca_ shppa_ shpss_", expr: `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b`},
	{name: "vault-token", keys: "hvs. hvb. hvr. dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. ops_eyj a3-",
		expr: `\b(?:hv[sbr]\.[\w-]{24,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}|ops_eyJ[\w=-]{100,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b)`, most: 2 << 10},
	{name: "vault-token", keys: ".atlasv1.", expr: `\.atlasv1\.([\w=-]{60,})`},
	{name: "monitoring-key", keys: "glc_ glsa_ nrak- nrii- sntrys_ sntryu_ dt0c01. dt0s01. hcaik_ phx_", expr: `\b(?:gl(?:c|sa)_[\w+/=]{32,}|NRAK-[A-Z0-9]{27}|NRII-[\w-]{32}|sntry[su]_[\w+/=]{60,}|` +
		`dt0[cs]01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}|hcai[kc]_[a-z0-9]{40,}|phx_[A-Za-z0-9]{40,})`, check: isOwn},
	{name: "service-token", keys: "lin_api_ lin_oauth_ ntn_ secret_ pat pmak- figd_ figo_ figu_ figr_ sl. pscale_ sbp_ sb_secret_ p8e- 4b1d fio-u- pat. sat. ico- s-s4t2 api- sha256~ tk-us- sm_aat_ sm_pat_ sm_sat_ shippo_ sgp_ eyjrijoi nfp_ sk.eyj eaa rdme_ pnu_ cfpat- tfp_ duffel_",
		expr: `\b(?:lin_(?:api|oauth)_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}\b|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}|fig[dour]_[\w-]{40,}|` +
			`sl\.[\w-]{130,}|pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}|sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,}|nfp_[A-Za-z0-9]{36}|sk\.eyJ[\w-]{20,}\.[\w-]{20,}|EAA[A-Za-z0-9]{100,}|` +
			`rdme_[a-z0-9]{70}|pnu_[A-Za-z0-9]{36}|CFPAT-[\w-]{43}|tfp_[\w-]{40,}|p8e-[A-Za-z0-9]{32}|4b1d[A-Za-z0-9]{38}\b|fio-u-[\w=-]{64}|[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}|ico-[A-Za-z0-9]{32}\b|s-s4t2(?:ud|af)-[A-Fa-f0-9]{64}|` +
			`API-[A-Z0-9]{26}\b|sha256~[\w-]{43}|tk-us-[\w-]{48}|sm_[aps]at_[A-Za-z0-9]{16}|shippo_(?:live|test)_[A-Fa-f0-9]{40}|sgp_(?:(?:[A-Fa-f0-9]{16}|local)_)?[A-Fa-f0-9]{40}|eyJrIjoi[A-Za-z0-9]{70,}|duffel_(?:live|test)_[\w-]{43})`, check: isMixed},
	{name: "jwt", keys: "eyj", most: 16 << 10, expr: `\beyJ[\w-]{8,400}\.(?:eyJ)?[\w-]{8,}\.[\w-]{16,}`, check: isJWT},
	{name: "password-hash", keys: "$2a$ $2b$ $2x$ $2y$ $1$ $5$ $6$ $7$ $y$ $gy$ $apr1$ $argon2 $pbkdf2 $scrypt pbkdf2_sha {ssha {scrypt",
		expr: `(?:\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$(?:1|apr1|5|6|7|y|gy)\$(?:[./A-Za-z0-9=]{1,40}\$){1,2}[./A-Za-z0-9]{20,}|\$(?:argon2(?:id|i|d)|pbkdf2(?:-sha\d+)?|scrypt)\$[\w=,$./+-]{30,}|` +
			`pbkdf2_sha\d+\$\d+\$[^$\s]{4,40}\$[A-Za-z0-9+/=]{20,}|\{(?:SSHA|SCRYPT)\d*\}[A-Za-z0-9+/=$.]{20,})`},
	{name: "url-password", keys: "://", expr: `://[^\s:/@"'<>\\]{0,64}:([^\s/@"'<>\\$%{[*][^\s/@"'<>\\]{2,})@[\w.\[-]`, check: func(_, _, v []byte) bool { return len(v) > 3 && !isPlaceholder(v) }},
	{name: "authorization", keys: "authorization", most: 4 << 10, expr: `(?i)authorization\\*["']?\s{0,4}[:=,]\s{0,4}\\*["']?(?:(?:bearer|basic|token|digest|apikey|key|bot)\s{1,4})?([^\s"'\x60\\,;<$%{[*(][^\s"'\x60\\,;]{7,})`,
		check: func(_, _, v []byte) bool { return !isPlaceholder(v) && (isStrong(v) || len(v) > 30) }},
	{name: "authorization", keys: "bearer", most: 4 << 10, expr: `(?i)\bbearer\s{1,4}([A-Za-z0-9._~+/-]{16,}={0,2})`, check: func(_, _, v []byte) bool { return !isPlaceholder(v) && isStrong(v) }},
	{name: "authorization", keys: "curl sshpass mysql", expr: `(?i)\b(?:curl\s(?:[^\r\n]{0,300}?\s)?(?:-u|--user)[ =]?['"]?[\w.@+-]{1,64}:([^\s"'\x60\\<$%{[*(][^\s"'\x60\\]{5,})|` +
		`sshpass\s{1,3}-p\s?['"]?([^\s"'\x60\\<$%{[*(][^\s"'\x60\\]{4,})|mysql(?:dump|admin)?\s(?:[^\r\n]{0,}?\s)?-p['"]?([^\s"'\x60\\<$%{[*(][^\s"'\x60\\]{5,}))`, check: func(_, _, v []byte) bool { return !isPlaceholder(v) }},
	{name: "authorization", keys: `"auth"`, expr: `"auth"\s{0,4}:\s{0,4}"([A-Za-z0-9+/]{12,}={0,2})"`, check: isBasic},
	{name: "cookie", keys: "cookie", most: 2 << 10, expr: `(?i)cookie\\*["']?\s{0,2}:\s{0,4}\\*["']?([\w.-]{1,64}=[^"'\r\n\\<>]{8,})`, check: isCookie},
	{name: "flag", keys: names, after: true, expr: `(?:=|\s{1,3})["']?([^\s"'\x60\\<$%{[*(-][^\s"'\x60\\]{5,})`, check: isFlag, most: 300},
	{name: "assignment", keys: names + " _key _pat", after: true, expr: `[A-Z0-9_]{0,30}=([^\s"'\x60\\<$%{[*(][^\s"'\x60\\]{5,})`, check: isVariable, most: 300},
	{name: "assignment", keys: names, after: true, expr: `(?i)(?:[_-]?(?:access|key|value|base|prod|dev|string|v?\d{1,2})){0,3}\\*["'\x60]?[\])]{0,2}(?:\s{0,8}:\s{0,3}[a-z]{2,12}\s{0,3}=\s{0,3}|\s{0,8}(?::=|=>|[:=])\s{0,8}|\s(?:string\s)?=\s|>)` +
		`(?:\\*[rbuf]?["'\x60]([^\s"'\x60\\<$%{[*(][^\s"'\x60\\<>]{5,})|([^\s"'\x60\\,;(){}\[\]&<>|$%*=:?][^\s"'\x60\\,;(){}\[\]&<>|]{5,}))[(\[{]?`, check: isAssigned, most: 300},
}

// compile is the form's program, made when it is first needed.
func (k *known) compile() *program {
	k.once.Do(func() {
		re, err := syntax.Parse(k.expr, syntax.Perl)
		if err != nil {
			panic("secret: " + k.name + ": " + err.Error()) // the table is tested
		}
		groups := re.MaxCap()
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			panic("secret: " + k.name + ": " + err.Error())
		}
		k.prog = &program{Prog: prog, whole: groups == 0, most: cmp.Or(k.most, mostBytes)}
	})
	return k.prog
}

// signWithin is how near behind a name the sign stands that gives it a value.
const signWithin = 40

// likely reports whether a value may follow a name, for less than matching costs.
func (k *known) likely(before, rest []byte) bool {
	if k.name == "flag" {
		return bytes.Contains(before, []byte("--")) || bytes.Contains(before, []byte("login "))
	}
	return bytes.ContainsAny(rest[:min(len(rest), signWithin)], "=:>")
}

// keyed finds the keys of the table in a text by three characters.
type keyed struct {
	fold   [256]uint16
	bucket [1 << 15]uint8 // by three characters, folded; 0: no key begins so
	keys   [][]key        // by bucket
	reach  int            // what is looked at behind where a key begins, before its form is matched
}

type key struct {
	text string
	form int
}

var keysOf = sync.OnceValue(func() *keyed {
	t := &keyed{keys: make([][]key, 1, 128)}
	for c := range t.fold {
		t.fold[c] = fold(byte(c))
	}
	for n := range forms {
		for text := range strings.FieldsSeq(forms[n].keys) {
			h := fold(text[0])<<10 | fold(text[1])<<5 | fold(text[2])
			if t.bucket[h] == 0 {
				t.bucket[h] = uint8(len(t.keys))
				t.keys = append(t.keys, nil)
			}
			t.keys[t.bucket[h]] = append(t.keys[t.bucket[h]], key{text, n})
			t.reach = max(t.reach, len(text)+signWithin)
		}
	}
	return t
})

// fold is a class of a character: a letter, a digit, or one of the others.
func fold(c byte) uint16 {
	switch c = small(c); {
	case isLower(c):
		return uint16(c - 'a' + 1)
	case isDigit(c):
		return 27
	case c == '-':
		return 28
	case c == '_':
		return 29
	}
	return 30
}

// small is a letter without its case.
func small(c byte) byte {
	if isUpper(c) {
		return c | 0x20
	}
	return c
}

// begins returns how many characters of a key b begins with.
func begins(b []byte, key string) int {
	n := 0
	for n < len(b) && n < len(key) && small(b[n]) == key[n] {
		n++
	}
	return n
}
