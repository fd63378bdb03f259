package sqlite

// gather takes into the open transaction what was queued while it ran, because
// a transaction that waits for its sync anyway can take it along.
func (w *writer) gather(group []*request, blobs []smallBlob) ([]*request, []smallBlob, error) {
	for {
		more := w.late(len(group))
		if len(more) == 0 {
			return group, blobs, nil
		}
		before := len(blobs)
		blobs = w.db.small.waiting()
		w.putting = blobs
		group = append(group, more...)
		if err := w.inside(more, blobs[before:]); err != nil {
			return group, blobs, err
		}
	}
}

// late is what was queued since a group of n was taken.
func (w *writer) late(n int) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.queue[:min(len(w.queue), groupLimit-n)]
	w.queue = w.queue[len(more):]
	return more
}
