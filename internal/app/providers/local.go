package providers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// Bounds of a look at the servers of this machine.
const (
	localTime  = 200 * time.Millisecond
	localBytes = 1 << 20
)

// Local are the servers of models on this machine that answer at once and have a model:
// those of the known ones that want no key, at their usual address or the one that the
// environment names.
func (m *Providers) Local(ctx context.Context) []config.Candidate {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	client := netdial.Client(netdial.Rules{Loopback: true})
	servers := m.Env.LocalServers()
	models := make([][]string, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() { models[i] = modelsAt(ctx, client, s.Base) })
	}
	asked.Wait()
	var all []config.Candidate
	for i, s := range servers {
		if len(models[i]) == 0 {
			continue
		}
		what := fmt.Sprintf("%s: it answers at %s and has %s", s.Name, s.Base, models[i][0])
		if more := len(models[i]) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		c := config.NewCandidate(s.Name, models[i][0], what)
		c.Try = "belay run --provider " + s.Name + " --model " + models[i][0] + " TEXT"
		all = append(all, c)
	}
	return all
}

// modelName is what a model may be called to be named in a command.
var modelName = match.Lazy(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// modelsAt are the names of the models that a server lists; none if it doesn't answer
// in time, or otherwise than servers of models do.
func modelsAt(ctx context.Context, client *http.Client, base string) (names []string) {
	at, err := url.JoinPath(base, "models")
	if err != nil {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(answer.Body, localBytes)).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Data {
		if modelName.Match(m.ID) {
			names = append(names, m.ID)
		}
	}
	return names
}
