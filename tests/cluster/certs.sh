#!/bin/sh
# certs.sh: one CA, the API server's two certificates, the key of service account tokens, a token per component.
set -eu
cd "$STATE/pki"
ec="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365"
openssl req -x509 $ec -keyout ca.key -out ca.crt -subj /CN=tablemount-test 2>/dev/null
sign() { # NAME SUBJECT EXTENSION...
	name=$1 subject=$2; shift 2
	openssl req -x509 $ec -CA ca.crt -CAkey ca.key -keyout "$name.key" -out "$name.crt" -subj "$subject" \
		-addext basicConstraints=critical,CA:FALSE "$@" 2>/dev/null
}
sign apiserver /CN=kube-apiserver -addext extendedKeyUsage=serverAuth -addext "subjectAltName=IP:$NET.1,IP:127.0.0.1,IP:$SERVICES.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
sign kubelet-client /O=system:masters/CN=kube-apiserver -addext extendedKeyUsage=clientAuth
openssl genrsa -out sa.key 2048 2>/dev/null
user() { # FILE USER GROUP
	token=$(openssl rand -hex 16)
	echo "$token,$2,$1,\"$3\"" >> tokens.csv
	cat > "$STATE/$1.conf" <<-Y
	apiVersion: v1
	kind: Config
	clusters: [{name: tablemount-test, cluster: {server: "https://$NET.1:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
	users: [{name: $1, user: {token: $token}}]
	contexts: [{name: tablemount-test, context: {cluster: tablemount-test, user: $1}}]
	current-context: tablemount-test
	Y
	chmod 600 "$STATE/$1.conf"
}
: > tokens.csv
user admin admin system:masters
user controllers system:kube-controller-manager ""
user scheduler system:kube-scheduler ""
user proxy system:kube-proxy ""
user kubelet "system:node:$NODE" system:nodes
