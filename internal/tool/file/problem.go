//go:build unix

package file

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/belay-run/belay/internal/tool"
)

// Problem is what the model reads for an error of the system about a path of
// the workspace. It says no absolute path. Errors of a context, and those a model
// reads already, stay.
func Problem(err error, name string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errChanged) {
		return err
	}
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	where := show(name)
	switch {
	case escapes(err):
		return outside(name)
	case errors.Is(err, fs.ErrNotExist):
		return tool.Failf(tool.NotFound, CodeNoSuchFile, "%s does not exist", where)
	case errors.Is(err, syscall.EROFS):
		return tool.Failf(tool.Denied, CodePermission, "%s is on a read-only file system", where)
	case errors.Is(err, fs.ErrPermission):
		return tool.Failf(tool.Denied, CodePermission, "no permission for %s", where)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return tool.Failf(tool.BadArguments, CodeBadPath, "%s is too long a path here", where)
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Failf(tool.BadArguments, CodeNotDirectory, "%s: a part of the path is not a folder", where)
	case errors.Is(err, syscall.ELOOP):
		return tool.Failf(tool.Denied, CodeBadLink, "%s: links in a circle", where)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return tool.Failf(tool.Internal, CodeNoSpace, "no space left for %s", where)
	}
	cause := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		cause = pe.Err
	}
	return tool.Failf(tool.Internal, CodeIO, "%s: %v", where, cause)
}

// escapes recognises the error of os.Root, which has no name.
func escapes(err error) bool {
	return err != nil && strings.Contains(err.Error(), "path escapes from parent")
}
