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
		blobs = w.small.waiting()
		w.putting = blobs
		group = append(group, more...)
		if err := w.inside(more, blobs[before:]); err != nil {
			return group, blobs, err
		}
	}
}

// late is what was queued since a group of n was taken.
func (q *queue) late(n int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	more := q.waiting[:min(len(q.waiting), groupLimit-n)]
	q.waiting = q.waiting[len(more):]
	return more
}
