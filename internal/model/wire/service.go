package wire

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/belay-run/belay/internal/model"
)

// Service is what a provider of any protocol is made of.
type Service struct {
	Endpoint Endpoint
	Prefixes *Prefixes
	Images   func(model string) bool // whether a model takes pictures; nil: none does
	Files    func(model string) bool // whether it takes documents; nil: none does
}

// Abilities are the model's as far as they are known.
func (s *Service) Abilities(name string) model.Abilities {
	return model.Abilities{Images: s.Images != nil && s.Images(name), Files: s.Files != nil && s.Files(name)}
}

// StreamFailure is a failure that came inside a stream, after status 200. status is
// what it would have been before.
func (e *Endpoint) StreamFailure(status int, body []byte) *model.Error {
	return e.Failure(status, http.Header{}, body, time.Time{})
}

// CodedFailure is a failure inside a stream that has the status as error.code.
func (e *Endpoint) CodedFailure(body []byte) *model.Error {
	var shape struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	status := http.StatusInternalServerError
	if json.Unmarshal(body, &shape) == nil && shape.Error.Code >= 400 && shape.Error.Code < 600 {
		status = shape.Error.Code
	}
	return e.StreamFailure(status, body)
}
