package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// TestACertificateIsReadAgain: the new one counts from then on, and files that
// can't be used change nothing.
// Guarantee: L23.
func TestACertificateIsReadAgain(t *testing.T) {
	c := &certificate{cert: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
	shown := func() string {
		pair, err := c.config().GetCertificate(nil)
		if err != nil || pair == nil {
			t.Fatalf("%v %v", pair, err)
		}
		return pair.Leaf.Subject.CommonName
	}
	for _, name := range []string{"first", "second"} {
		pemPair(t, c, name)
		if err := c.load(); err != nil || shown() != name {
			t.Errorf("%s: it shows %s, %v", name, shown(), err)
		}
	}
	if err := os.WriteFile(c.key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.load(); belay.CodeOf(err) != belay.CodeUsage || shown() != "second" {
		t.Errorf("a broken file: it shows %s, %v", shown(), err)
	}
	if none := (&certificate{}); none.load() != nil || none.config() != nil {
		t.Error("where there is no certificate there is one")
	}
}

// pemPair writes a certificate of this name and its key.
func pemPair(t *testing.T, c *certificate, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	raw, kerr := x509.MarshalPKCS8PrivateKey(key)
	if err != nil || kerr != nil {
		t.Fatal(err, kerr)
	}
	for file, b := range map[string]*pem.Block{c.cert: {Type: "CERTIFICATE", Bytes: der}, c.key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
