package config

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// trustStream holds the facts of what is trusted: the system session's, which all
// processes of a store share. Each append claims it, and gives it back.
const trustStream = belay.StreamID(belay.KindSession + "/" + string(belay.SystemSession))

// Standing is how far a file's content is trusted.
type Standing string

const (
	Trusted Standing = "trusted" // the content is the one that a person trusted
	Unknown Standing = "unknown" // the path was never trusted, or it was revoked
	Changed Standing = "changed" // another content of the path is trusted
)

// TrustedFile is a content of a path that is trusted.
type TrustedFile struct {
	Path    string    `json:"path"`    // absolute, without links
	Content belay.Ref `json:"content"` // kept, so that it can be seen what was trusted
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// TrustBook is what is trusted, folded from the facts.
type TrustBook struct {
	files   map[string]TrustedFile
	servers map[serverID]TrustedServer
	agents  agentBook
	seq     int64
}

// serverID is an MCP server: the file that describes it, and its name there.
type serverID struct{ file, name string }

// TrustedServer are the definitions of an MCP server's tools.
type TrustedServer struct {
	Accepted belay.Ref  // content: those that a person accepted, or that were there when it was seen first
	Seen     *belay.Ref // content: those it was seen with last, where they differ
}

// Server are the definitions of a server's tools that were accepted; false: it was
// never seen.
func (b *TrustBook) Server(file, name string) (TrustedServer, bool) {
	if b == nil {
		return TrustedServer{}, false
	}
	s, ok := b.servers[serverID{file, name}]
	return s, ok
}

func (b *TrustBook) applyServer(p event.PolicyChanged) {
	if b.servers == nil {
		b.servers = map[serverID]TrustedServer{}
	}
	id := serverID{p.Path, p.Server}
	switch {
	case p.Op == "granted" && p.Digest != nil:
		b.servers[id] = TrustedServer{Accepted: *p.Digest}
	case p.Op == "changed" && p.Digest != nil:
		s := b.servers[id]
		s.Seen = p.Digest
		b.servers[id] = s
	case p.Op == "revoked":
		delete(b.servers, id)
	}
}

// Apply folds one fact of the stream. It takes any.
func (b *TrustBook) Apply(e event.Envelope) {
	b.seq = max(b.seq, e.Seq)
	if p, ok := e.Data.(event.ArtifactChanged); ok && p.Kind == "agent" {
		b.agents.apply(e, p)
		return
	}
	p, ok := e.Data.(event.PolicyChanged)
	if !ok || p.Kind != "trust" || p.Path == "" {
		return
	}
	if p.Server != "" {
		b.applyServer(p)
		return
	}
	switch {
	case p.Op == "granted" && p.Digest != nil:
		if b.files == nil {
			b.files = map[string]TrustedFile{}
		}
		b.files[p.Path] = TrustedFile{Path: p.Path, Content: *p.Digest, By: p.By, At: e.Time}
	case p.Op == "revoked":
		delete(b.files, p.Path)
	}
}

// Check returns how far a content at a path is trusted. A nil book trusts
// nothing.
func (b *TrustBook) Check(path string, content []byte) Standing {
	if b == nil {
		return Unknown
	}
	f, ok := b.files[path]
	switch {
	case !ok:
		return Unknown
	case f.Content.Digest != belay.DigestOf(content):
		return Changed
	}
	return Trusted
}

// Files lists what is trusted, by path.
func (b *TrustBook) Files() []TrustedFile {
	out := make([]TrustedFile, 0, len(b.files))
	for _, f := range b.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y TrustedFile) int { return strings.Compare(x.Path, y.Path) })
	return out
}

// Get is what is trusted of a path.
func (b *TrustBook) Get(path string) (TrustedFile, bool) {
	f, ok := b.files[path]
	return f, ok
}

// ReadTrust folds what is trusted in a store.
func ReadTrust(ctx context.Context, st store.Store) (*TrustBook, error) {
	b := &TrustBook{}
	for e, err := range st.Read(ctx, trustStream, 0) {
		if err != nil {
			return nil, err
		}
		b.Apply(e)
	}
	return b, nil
}

// TrustWriter records trust and its revocation.
type TrustWriter struct {
	Store store.Store
	Owner store.Owner
	By    string // the principal
}

// Trust records that a content of a path is trusted. Trusting it again records nothing.
func (w TrustWriter) Trust(ctx context.Context, path string, content []byte) (TrustedFile, error) {
	ref, err := w.Store.Put(ctx, content, "text/plain; charset=utf-8")
	if err != nil {
		return TrustedFile{}, err
	}
	b, err := w.write(ctx, func(b *TrustBook) []event.Payload {
		if b.Check(path, content) == Trusted {
			return nil
		}
		return one(event.PolicyChanged{Kind: "trust", Op: "granted", Path: path, Digest: &ref, Tier: "user", By: w.By})
	})
	if err != nil {
		return TrustedFile{}, err
	}
	f, _ := b.Get(path)
	return f, nil
}

// Revoke takes trust back; false when the path had none.
func (w TrustWriter) Revoke(ctx context.Context, path string) (had bool, err error) {
	_, err = w.write(ctx, func(b *TrustBook) []event.Payload {
		f, ok := b.Get(path)
		if had = ok; !ok {
			return nil
		}
		return one(event.PolicyChanged{Kind: "trust", Op: "revoked", Path: path, Digest: &f.Content, Tier: "user", By: w.By})
	})
	return had, err
}

// AcceptServer records the definitions of a server's tools that may be offered.
func (w TrustWriter) AcceptServer(ctx context.Context, file, name string, definitions []byte) error {
	return w.server(ctx, "granted", file, name, definitions)
}

// SeeServer records definitions that differ from those that were accepted.
func (w TrustWriter) SeeServer(ctx context.Context, file, name string, definitions []byte) error {
	return w.server(ctx, "changed", file, name, definitions)
}

func (w TrustWriter) server(ctx context.Context, op, file, name string, definitions []byte) error {
	ref, err := w.Store.Put(ctx, definitions, "application/json")
	if err != nil {
		return err
	}
	_, err = w.write(ctx, func(b *TrustBook) []event.Payload {
		s, ok := b.Server(file, name)
		if op == "granted" && ok && s.Accepted == ref && s.Seen == nil || op == "changed" && s.Seen != nil && *s.Seen == ref {
			return nil
		}
		return one(event.PolicyChanged{Kind: "trust", Op: op, Path: file, Server: name, Digest: &ref, Tier: "user", By: w.By})
	})
	return err
}

// SavedRule records that a file of rules was saved beside the person's other ones.
func (w TrustWriter) SavedRule(ctx context.Context, path string, content []byte) error {
	ref, err := w.Store.Put(ctx, content, "application/yaml")
	if err != nil {
		return err
	}
	_, err = w.write(ctx, func(*TrustBook) []event.Payload {
		return one(event.PolicyChanged{Kind: "rules", Op: "saved", Path: path, Digest: &ref, Tier: "user", By: w.By})
	})
	return err
}

// tries is how often a writer decides anew because another one was faster.
const tries = 100

func one(p event.Payload) []event.Payload { return []event.Payload{p} }

// write decides on what is there and appends the facts. Another writer between
// the two makes it decide again.
func (w TrustWriter) write(ctx context.Context, decide func(*TrustBook) []event.Payload) (b *TrustBook, err error) {
	err = store.ClaimStream(ctx, w.Store, w.Owner, trustStream, func(epoch int64) error {
		for range tries {
			if b, err = ReadTrust(ctx, w.Store); err != nil {
				return err
			}
			facts := decide(b)
			if len(facts) == 0 {
				return nil
			}
			batch := store.Batch{Session: belay.SystemSession, Stream: trustStream, After: b.seq, Epoch: epoch}
			for i, p := range facts {
				batch.Events = append(batch.Events, event.Envelope{Stream: trustStream, Seq: b.seq + 1 + int64(i), IDs: belay.IDs{Session: belay.SystemSession}, Data: p})
			}
			_, err = w.Store.Append(ctx, batch)
			if !errors.Is(err, store.ErrConflict) {
				break
			}
		}
		if err == nil {
			b, err = ReadTrust(ctx, w.Store)
		}
		return err
	})
	return b, err
}

// governed are the files of a workspace that count only when they are trusted,
// relative to it, besides those of agents and skills, which count for less without it.
var governed = []string{serversFile, ".belay/belay.yaml", ".belay/policy.yaml", ".belay/tools/*.yaml", ".belay/tools/*.yml"}

// Governs reports whether a path of a workspace is such a file's.
func Governs(rel string) bool {
	return isAgent(rel) || isSkill(rel) || slices.ContainsFunc(governed, func(p string) bool { ok, err := path.Match(p, rel); return ok && err == nil })
}

func isAgent(rel string) bool {
	return agentfile.Names(path.Base(rel)) && slices.ContainsFunc(agentDirs, func(dir string) bool { return strings.HasPrefix(rel, dir+"/") })
}

func isSkill(rel string) bool {
	return path.Base(rel) == agentfile.SkillFile && slices.ContainsFunc(skillDirs, func(dir string) bool { return strings.HasPrefix(rel, dir+"/") })
}

// Governed lists those a workspace has, in order.
func Governed(workspace string) []string {
	root, err := files.OpenRoot(workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	return governedIn(files.Tree(root))
}

func governedIn(workspace fs.FS) (out []string) {
	for _, p := range governed {
		found, err := fs.Glob(workspace, p)
		if err != nil {
			continue // a pattern of ours is never bad
		}
		out = append(out, found...)
	}
	for _, dir := range slices.Concat(agentDirs, skillDirs) {
		fs.WalkDir(workspace, dir, func(rel string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read isn't there
			if err == nil && d.Type().IsRegular() && (isAgent(rel) || isSkill(rel)) {
				out = append(out, rel)
			}
			return nil
		})
	}
	slices.Sort(out)
	return out
}
