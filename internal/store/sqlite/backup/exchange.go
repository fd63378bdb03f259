package backup

import (
	"errors"
	"os"
)

// exchangeInSteps is exchange where the system can't do it at once. Dying
// between the steps leaves b missing and its content under the third name.
func exchangeInSteps(a, b string) error {
	third := b + ".aside"
	if err := os.Rename(b, third); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(third, b))
	}
	return os.Rename(third, a)
}
