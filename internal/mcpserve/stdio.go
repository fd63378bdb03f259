package mcpserve

import (
	"context"
	"errors"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio serves one client on a pair of streams until it leaves or the context ends.
func Stdio(ctx context.Context, s *sdk.Server, in io.Reader, out io.Writer) error {
	err := s.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// unclosed is a stream that stays open: it belongs to the process.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }
