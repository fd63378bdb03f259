package cli
import ("testing";"time";"context";"io";"github.com/belay-run/belay/internal/tool";"github.com/belay-run/belay/internal/secret";"os")
func TestZZ(t *testing.T){
 t0:=time.Now(); lap:=func(s string){t.Log(s,time.Since(t0)); t0=time.Now()}
 var g grammar
 k,_:=newParser(&g,Sys{Stdout:io.Discard,Stderr:io.Discard},func(int){}); lap("kong new")
 k.Parse([]string{"run","--script","x","y"}); lap("kong parse")
 a:=&app{Sys:Sys{Now:time.Now,Dir:"/tmp/perf/ws",Env:os.Environ(),IsTerminal:func(any)bool{return false}},Place:Place{Store:t.TempDir()}}
 a.checkedWorkspace(); lap("workspace")
 a.fresh(Config{Script:"../h.yaml"}); lap("settings+script")
 tool.NewSet(a.builtin()...); lap("toolset")
 secret.FromEnviron(a.Env); lap("secrets")
 st,_:=a.open(context.Background(),true); lap("open new"); st.Close(); lap("close")
 st,_=a.open(context.Background(),true); lap("open again");
 w,_:=a.newWork(st); lap("newwork")
 c,_:=a.fresh(Config{Script:"../h.yaml"})
 w.begin(context.Background(),"/tmp/perf/ws","x",c,"x"); lap("begin")
 w.close(); lap("close")
}
