package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// wrap turns what SQLite says into an error as a user meets it. Errors that
// have a code already, and ends of a context, pass unchanged.
func (p *place) wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*belay.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, sql.ErrConnDone) || p.closed.Load() && layout.ResultCode(err) == 0 {
		return errClosed()
	}
	return layout.Failed(p.path, err, doing)
}
