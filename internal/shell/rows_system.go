package shell

// systemPrograms change the machine, its processes and its users.
var systemPrograms = []program{
	{name: "kill", class: Destructive, why: "it ends processes", opts: "-l:v -L:v -0:v --list:v --table:v *"},
	{name: "pkill,killall,xkill,skill,killall5,fuser,renice", class: Destructive, why: "it ends or changes processes", opts: "*"},
	{name: "shutdown,reboot,halt,poweroff,init,telinit,kexec,suspend,hibernate,rtcwake", class: Destructive, why: "it stops the machine", opts: "*"},
	{name: "mkfs,mkfs.ext2,mkfs.ext3,mkfs.ext4,mkfs.xfs,mkfs.btrfs,mkfs.vfat,mkswap,fdisk,sfdisk,cfdisk,parted,gdisk,sgdisk,wipefs,blkdiscard,hdparm,tune2fs,resize2fs,fsck,e2fsck,xfs_repair,debugfs,badblocks,lvremove,vgremove,pvremove,lvcreate,vgcreate,pvcreate,lvm,mdadm,cryptsetup,dmsetup,losetup,zpool,zfs,btrfs,swapon,swapoff,diskutil,diskpart,format", class: EscapeAttempt, why: "it changes disks", opts: "*"},
	{name: "mount,umount,pivot_root,switch_root,fusermount,mountpoint,sshfs,autofs", class: EscapeAttempt, why: "it changes the file tree of the machine", opts: "*"},
	{name: "insmod,rmmod,modprobe,depmod,kmod,bpftool,bpftrace,sysctl,setenforce,getenforce,aa-teardown,auditctl,semanage,setsebool,apparmor_parser,update-initramfs,grub-install,update-grub,efibootmgr,mokutil", class: EscapeAttempt, why: "it changes the kernel or its guards", opts: "*"},
	{name: "useradd,userdel,usermod,adduser,deluser,groupadd,groupdel,groupmod,addgroup,delgroup,passwd,chpasswd,gpasswd,chsh,chfn,chage,newgrp,sg,visudo,vipw,vigr,pwconv,login,loginctl,sulogin,newuidmap,newgidmap", class: EscapeAttempt, why: "it changes users and rights", opts: "*"},
	{name: "crontab,anacron,atrm,at,batch,tmux,screen,daemonize,start-stop-daemon,systemd-run,zellij,dtach,abduco,nq,tsp,systemd-tmpfiles,launchctl,schtasks,chkconfig,update-rc.d,rc-update,insserv", class: EscapeAttempt, why: "it makes something run later, or on when the rest has ended", opts: "-l:v *"},
	{name: "systemctl", sub: true, class: Destructive, opts: "* -H=N -M= -t= -p= -n= -o="},
	{name: "systemctl status,systemctl show,systemctl cat,systemctl list-units,systemctl list-unit-files,systemctl list-timers,systemctl list-sockets,systemctl list-dependencies,systemctl is-active,systemctl is-enabled,systemctl is-failed,systemctl is-system-running,systemctl get-default,systemctl show-environment,systemctl help", opts: "* -H=N -M= -t= -p= -n= -o="},
	{name: "systemctl enable,systemctl disable,systemctl link,systemctl edit,systemctl mask,systemctl unmask,systemctl revert,systemctl set-property,systemctl set-environment,systemctl import-environment,systemctl set-default,systemctl daemon-reload,systemctl daemon-reexec,systemctl preset,systemctl reenable,systemctl add-wants,systemctl add-requires", class: EscapeAttempt, why: "it changes what starts with the machine", opts: "* -H=N -M= -t= -p= -n= -o="},
	{name: "service", class: Destructive, why: "it starts and stops services", opts: "--status-all:v *"},
	{name: "hostnamectl,timedatectl,localectl", class: Destructive, why: "it changes the system's settings", opts: "*"},
	{name: "hwclock,ntpdate,adjtimex,chronyc,ldconfig,update-alternatives,update-ca-certificates,dpkg-reconfigure,dpkg-divert,locale-gen,tzselect,setterm,stty,chvt,loadkeys,kbd_mode,setfont,reset,clear,tset", class: WriteWorkspace, why: "it changes settings of the system or the terminal", opts: "*"},
	{name: "pbcopy,pbpaste,xclip,xsel,wl-copy,wl-paste,clip", class: EscapeAttempt, why: "the clipboard belongs to the person", opts: "*"},
	{name: "osascript,open,xdg-open,gio,notify-send,xdotool,wmctrl,screencapture,import,scrot,dbus-send,gdbus,gsettings,dconf,defaults,security,keyctl,secret-tool,pass,op,gpg-agent,gpgconf,ssh-agent,ssh-add", class: EscapeAttempt, why: "it reaches what belongs to the person", opts: "*"},
	{name: "gpg,gpg2,age,openssl,minisign,signify,cosign,sops,ansible-vault", class: Destructive, why: "what it does with keys isn't judged", opts: "--version:v --help:v *"},
	{name: "pidwait,wall,write,mesg,logger,systemd-cat,initctl", class: Destructive, why: "it reaches others on the machine", opts: "*"},
	{name: "ptrace,gcore,pstack,reptyr,criu,crash,ltrace-attach,dtrace,stap,trace-cmd,nsjail", class: EscapeAttempt, why: "it looks into other processes", opts: "*"},
	{name: "inotifywait,fswatch,inotifywatch", args: "r", opts: "-m -r -e= -q -t= --format= --monitor --recursive --event= --exclude= --timeout= -o=w --outfile=w -d:W --daemon:W"},
	{name: "tput,clear_console", opts: "*"},
}

// serverPrograms speak to daemons, clouds and databases.
var serverPrograms = []program{
	{name: "docker,podman,nerdctl", sub: true, class: Destructive, opts: "-H=N -c= -D -l= --host=N --context= --config=r --debug --log-level= --tls --version:v -v:v --help:v --url=N --connection="},
	{name: "docker ps,docker images,docker logs,docker inspect,docker version,docker info,docker top,docker port,docker diff,docker history,docker stats,docker events", opts: "*"},
	{name: "docker container,docker image,docker volume,docker network,docker system,docker context,docker compose,docker builder,docker buildx,docker manifest,docker plugin,docker swarm", sub: true, class: Destructive, opts: "-f=r -p= --file=r --project-name= --profile= --env-file=r --project-directory=C"},
	{name: "docker container ls,docker container list,docker container ps,docker container inspect,docker container logs,docker container top,docker container stats,docker image ls,docker image list,docker image inspect,docker image history,docker volume ls,docker volume inspect,docker network ls,docker network inspect,docker system df,docker system info,docker system events,docker context ls,docker context show,docker context inspect,docker compose ps,docker compose logs,docker compose config,docker compose images,docker compose top,docker compose ls,docker compose version,docker buildx ls,docker buildx version", opts: "* -o=w --output=w"},
	{name: "docker pull,docker push,docker login,docker search,docker compose pull,docker compose push,docker image pull,docker image push", class: Network, why: "it connects to a registry", opts: "*"},
	{name: "docker build,docker compose build,docker buildx build,docker image build", class: Network, why: "it builds with what it downloads", opts: "* -o=w --output=w --privileged:E --allow=E --network= --secret=E --ssh=E"},
	{name: "docker run,docker create,docker compose run,docker container run,docker container create", class: Destructive, why: "it runs with the rights that the container gets", opts: "* -v=E --volume=E --mount=E --privileged:E --pid=E --ipc=E --userns=E --network=N --net=N --cap-add=E --device=E --security-opt=E --uts=E --cgroupns=E --volumes-from=E -e= --env= --name= -w= --workdir= -u= --user= -p=N --publish=N -P:N --entrypoint= --env-file=r", style: posix},
	{name: "docker-compose", sub: true, class: Destructive, opts: "-f=r -p= --file=r"},
	{name: "docker-compose ps,docker-compose logs,docker-compose config,docker-compose images,docker-compose version", opts: "*"},
	{name: "kubectl,oc,k", sub: true, class: Destructive, opts: "-n= -s=N --namespace= --context= --kubeconfig=r --cluster= --user= --server=N --request-timeout= -v= --as="},
	{name: "kubectl get,kubectl describe,kubectl logs,kubectl top,kubectl explain,kubectl api-resources,kubectl api-versions,kubectl cluster-info,kubectl version,kubectl events,kubectl diff,kubectl auth,kubectl wait", class: Network, why: "it asks the cluster", opts: "* -o= -n= -l= -f=r"},
	{name: "kubectl config", sub: true, class: Destructive, opts: ""},
	{name: "kubectl config view,kubectl config current-context,kubectl config get-contexts,kubectl config get-clusters", opts: "* --raw:E"},
	{name: "helm,kustomize,terraform,tofu,pulumi,ansible,ansible-playbook,vagrant,packer,nomad,consul,vault,aws,gcloud,gsutil,bq,az,doctl,heroku,fly,flyctl,vercel,netlify,firebase,wrangler,supabase,eksctl,sam,serverless,cdk,ibmcloud,oci,linode-cli,hcloud,scw,railway,render", class: Destructive, why: "it changes what runs elsewhere", opts: "--version:v --help:v *"},
	{name: "terraform version,terraform validate", opts: "*"},
	{name: "systemd-nspawn,firejail,bwrap,proot,valgrind,perf,gdb,lldb,rr,direnv,mise,asdf,dotenv,cross-env,doppler,entr,watchexec,watchman,hyperfine,flatpak-spawn,distrobox-enter,toolbox,busctl,runcon,trickle,cgexec,s6-setuidgid,numactl,prlimit,softlimit,chpst,rlwrap,systemd-inhibit,concurrently,npm-run-all,run-p,run-s,expect,gnome-terminal,xterm,konsole,alacritty,kitty,wezterm", class: Unparsable, why: "what it starts isn't judged", opts: "--version:v --help:v *"},
	{name: "psql,mysql,mariadb,sqlite3,sqlite,redis-cli,mongo,mongosh,mongodump,mongorestore,mysqldump,pg_dump,pg_restore,pg_dumpall,createdb,dropdb,createuser,dropuser,clickhouse-client,cqlsh,influx,etcdctl,duckdb,sqlcmd,osql,bcp,usql,pgcli,mycli,litecli,valkey-cli,memcached-tool,rabbitmqctl,rabbitmqadmin,kafka-topics,kafka-console-producer,kafka-console-consumer,kcat,nats,mosquitto_pub,mosquitto_sub", class: Destructive, why: "what it does to a database isn't judged", opts: "--version:v --help:v *"},
}
