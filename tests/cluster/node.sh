#!/bin/sh
# node.sh: the first process of the node's own pid, mount, network and host name namespaces (up.sh starts it).
# When it ends, the kernel ends all that it started, and drops the mounts and interfaces with the namespaces.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
mount --make-rshared /                        # for Bidirectional mounts; up.sh cut the ties to the host before
mount -t tmpfs tmpfs /run
mount --bind "$STATE/var-lib" /var/lib        # containerd's, kubelet's and CNI's data: on the disk, at the usual paths
mount --bind "$STATE/var-log" /var/log
mkdir -p /tmp/hostpath_pv && mount --bind "$STATE/pv" /tmp/hostpath_pv
# kubelet wants these values; let it see them rather than set them for the whole machine
for s in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	f=$STATE/sysctl.$(echo "${s%=*}" | tr / .)
	echo "${s#*=}" > "$f"; mount --bind "$f" "/proc/sys/${s%=*}"
done
for c in $(cgroups); do echo 0 > "$c/system/cgroup.procs"; done
hostname "$NODE"
ip link set lo up
until ip link show node0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$NET.1/24" dev node0
ip link set node0 up
ip route add "$SERVICES.0.0/16" dev node0     # a ClusterIP needs some route before kube-proxy's rules turn it
ip route add unreachable default              # so what would leave the machine fails at once
echo 1 > /proc/sys/net/ipv4/ip_forward

cat > "$STATE/cni/10-tablemount-test.conflist" <<J
{"cniVersion": "1.0.0", "name": "tablemount-test", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$PODS.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
cat > "$STATE/containerd.toml" <<T
version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$BUSYBOX"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
T
echo "nameserver 127.0.0.1" > "$STATE/resolv.conf"   # pods with dnsPolicy Default, and what CoreDNS would forward to: nothing
cat > "$STATE/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE/pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$NAME
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [$NET.1]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
volumePluginDir: /var/lib/kubelet/volumeplugins
failSwapOn: false
failCgroupV1: false
oomScoreAdj: 0
serializeImagePulls: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
Y
cat > "$STATE/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $STATE/proxy.conf}
clusterCIDR: $PODS.0.0/16
mode: iptables
iptables: {minSyncPeriod: 0s}
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
cat > "$STATE/Corefile" <<C
cluster.local:53 in-addr.arpa:53 {
	bind $NET.1
	errors
	kubernetes cluster.local in-addr.arpa {
		kubeconfig $STATE/admin.conf
		pods insecure
		ttl 1
	}
}
C

run() { name=$1; shift; "$@" > "$STATE/log/$name" 2>&1 & }
run containerd containerd --config "$STATE/containerd.toml"
run etcd etcd --data-dir "$STATE/etcd" --unsafe-no-fsync --log-level warn \
	--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
run apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address "$NET.1" --secure-port 6443 \
	--allow-privileged --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
	--service-cluster-ip-range "$SERVICES.0.0/16" \
	--tls-cert-file "$STATE/pki/apiserver.crt" --tls-private-key-file "$STATE/pki/apiserver.key" \
	--client-ca-file "$STATE/pki/ca.crt" --token-auth-file "$STATE/pki/tokens.csv" \
	--kubelet-client-certificate "$STATE/pki/kubelet-client.crt" --kubelet-client-key "$STATE/pki/kubelet-client.key" \
	--kubelet-preferred-address-types InternalIP \
	--service-account-issuer https://kubernetes.default.svc.cluster.local \
	--service-account-key-file "$STATE/pki/sa.key" --service-account-signing-key-file "$STATE/pki/sa.key"
until ctr version >/dev/null 2>&1; do sleep 0.1; done
ctr -n k8s.io images import "$STATE/busybox.tar" >/dev/null
kubectl="kubectl --kubeconfig $STATE/admin.conf"
until $kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done
run controllers kube-controller-manager --kubeconfig "$STATE/controllers.conf" --leader-elect=false \
	--kube-api-qps 1000 --kube-api-burst 1000 --use-service-account-credentials \
	--service-account-private-key-file "$STATE/pki/sa.key" --root-ca-file "$STATE/pki/ca.crt" \
	--cluster-signing-cert-file "$STATE/pki/ca.crt" --cluster-signing-key-file "$STATE/pki/ca.key" \
	--enable-hostpath-provisioner --pvclaimbinder-sync-period 1s --flex-volume-plugin-dir /var/lib/kubelet/volumeplugins
run scheduler kube-scheduler --kubeconfig "$STATE/scheduler.conf" --authentication-kubeconfig "$STATE/scheduler.conf" \
	--authorization-kubeconfig "$STATE/scheduler.conf" --leader-elect=false
run kubelet kubelet --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/kubelet.conf" --hostname-override "$NODE" --node-ip "$NET.1"
run proxy kube-proxy --config "$STATE/proxy.yaml" --hostname-override "$NODE"
run coredns coredns -conf "$STATE/Corefile"
# A provisioned volume is made 0750 for root, and fsGroup does nothing for hostPath: open each new one to all users.
while sleep 0.2; do find "$STATE/pv" -mindepth 1 -maxdepth 1 -user 0 -perm 750 -exec chmod 777 {} + || true; done &
$kubectl apply -f - <<Y
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/host-path
Y
until $kubectl get node "$NODE" >/dev/null 2>&1 && $kubectl -n default get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done
$kubectl wait --for condition=Ready "node/$NODE" --timeout 60s
touch "$STATE/ready"
wait
