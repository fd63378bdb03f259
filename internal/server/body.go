package server

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
)

// readBody takes the body of a request: JSON of at most so many bytes, in one piece.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(strings.ToLower(kind)) != "application/json" {
		return nil, input.At("header Content-Type", belay.Errorf(belay.CodeMedia, "the body must be application/json").WithHint("send Content-Type: application/json"))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, input.At("header Content-Encoding", belay.Errorf(belay.CodeMedia, "the body must not be encoded").WithHint("send it as it is, without Content-Encoding"))
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, input.At("body", belay.Errorf(belay.CodeTooLarge, "the body has more than %d bytes", most).WithHint("send less; what is long goes into a file of the workspace"))
		}
		return nil, input.At("body", belay.Errorf(belay.CodeBadCommand, "the body didn't come whole").WithHint("repeat the request"))
	}
	return b.Bytes(), nil
}
