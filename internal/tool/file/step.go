//go:build unix

package file

import "context"

// stepKey is where a context carries a func(op string) error that is called
// before each operation that changes something on disk. It is how tests cut
// the power at every one of them; an error stops the operation.
type stepKey struct{}

// step asks whether an operation may happen.
func (p *place) step(op string) error {
	if p.steps == nil {
		return nil
	}
	return p.steps(op + " " + p.name)
}

// do does an operation if it may happen.
func (p *place) do(op string, f func() error) error {
	if err := p.step(op); err != nil {
		return err
	}
	return f()
}

func stepsOf(ctx context.Context) func(string) error {
	f, _ := ctx.Value(stepKey{}).(func(string) error)
	return f
}
