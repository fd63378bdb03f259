package sqlite
import "testing"
func TestZZ(t *testing.T) {
	db := openBench(t, t.TempDir())
	for _, q := range []string{"SELECT o.epoch, s.id, s.session, s.seq, s.time, s.hash, s.runnable, s.wake, s.sum, k.pos FROM (SELECT 1) "+
		"LEFT JOIN owners o ON o.key=? AND o.owner<>'' LEFT JOIN streams s ON s.name=? LEFT JOIN keys k ON k.stream=s.id AND k.key=?",
		"UPDATE owners SET lease=? WHERE owner=? AND owner<>''",
		"SELECT s.id, (SELECT count(*) FROM inbox i WHERE i.stream=s.id) FROM streams s WHERE s.session=? AND (s.runnable<>0 OR s.wake<>0)",
		"SELECT s.id, n FROM (SELECT stream, count(*) AS n FROM inbox GROUP BY stream) JOIN streams s ON s.id=stream WHERE s.session=? AND s.runnable=0 AND s.wake=0 ORDER BY 1",
		"DELETE FROM inbox WHERE stream=? AND id=?",
		"SELECT r.key, r.data FROM views v JOIN view_rows r ON r.view=v.id WHERE v.name=? AND r.key>=? ORDER BY r.key LIMIT ?",
	} {
		t.Log(q)
		rows, err := db.readers.Query("EXPLAIN QUERY PLAN "+q, 1,2,3)
		if err != nil { rows, err = db.readers.Query("EXPLAIN QUERY PLAN "+q, 1,2) }
		if err != nil { rows, err = db.readers.Query("EXPLAIN QUERY PLAN "+q, 1) }
		if err != nil { t.Fatal(err) }
		for rows.Next() { var a,b,c int; var s string; rows.Scan(&a,&b,&c,&s); t.Log("   ", s) }
		rows.Close()
	}
	f,c,err := db.writer.wal("NOOP"); t.Log(f,c,err, db.Stats())
}
