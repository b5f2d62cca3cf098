#!/bin/bash
# check.sh: proves what Tablemount's tests rely on in a running cluster; prints what each thing took. Run by `make test-cluster-check`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
export KUBECONFIG=$STATE/admin.conf
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

check() { # NAME COMMAND...: passes when the command does
	local name=$1 out result=ok start; shift
	start=$(date +%s%3N)
	out=$("$@" 2>&1) || result=FAILED
	printf '%-46s %-6s %5d ms\n' "$name" "$result" $(($(date +%s%3N) - start))
	if [ $result = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$out" | sed 's/^/    /'; fi
}
prints() { local want=$1 got; shift; got=$("$@") || return; [[ $got == *"$want"* ]] || { echo "got: $got, not: $want"; return 1; }; }
refused() { local want=$1 got; shift; if got=$("$@" 2>&1); then echo "not refused: $got"; return 1; fi; [[ $got == *"$want"* ]] || { echo "got: $got"; return 1; }; }
retry() { local i; for i in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }
client() { kubectl exec client -- "$@"; }
value() { kubectl get $1 -o "jsonpath={$2}"; }

forward() {
	kubectl port-forward --address 127.0.0.1 service/web :80 > "$folder/forward" & local p=$! status=0
	retry grep -q Forwarding "$folder/forward" && curl -sfm5 "http://$(sed -n 's/Forwarding from \([0-9.:]*\).*/\1/p' "$folder/forward")/" || status=$?
	kill $p; return $status
}
review() { # AUDIENCE: what the API server says of the client's token for it
	kubectl create -o 'jsonpath={.status.authenticated} {.status.user.username}' -f - <<-Y
	{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "$(client cat /token/token)", "audiences": ["$1"]}}
	Y
}
thing() { # MIN: an object whose rule wants it to be at most 2
	kubectl apply -f - <<-Y
	{"apiVersion": "check.tablemount.dev/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "default"}, "spec": {"min": $1, "max": 2}}
	Y
}
chart() {
	mkdir -p "$folder/chart/templates"
	echo '{apiVersion: v2, name: chart, version: 0.1.0}' > "$folder/chart/Chart.yaml"
	echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-cm}, data: {replicas: {{ .Values.replicas | default 1 | quote }}}}' > "$folder/chart/templates/cm.yaml"
	helm install rel "$folder/chart" --wait
}

check 'objects of check.yaml'                     kubectl apply -f "$here/check.yaml"
check 'a pod is Ready'                            kubectl wait --for condition=Ready pod/client --timeout 60s
check 'a Deployment is available'                 kubectl rollout status deployment/web --timeout 60s
ip=$(value service/web .spec.clusterIP)
check 'a Service by ClusterIP, from a pod'        retry client wget -qO- "http://$ip/"
check 'its DNS name, from a pod'                  prints "$ip" client nslookup web.default.svc.cluster.local
check 'a Service by ClusterIP, from the host'     curl -sfm5 "http://$ip/"
check 'by NodePort, from the host'                retry curl -sfm5 "http://$NET.1:30080/"
check 'a pod by its IP, from the host'            curl -sfm5 "http://$(value 'pod -l app=web' '.items[0].status.podIP'):8080/"
check 'an address outside fails at once'          refused 'No route to host' timeout 3 "$BIN/kubectl" exec client -- wget -qO- http://192.0.2.99/
check 'logs'                                      prints serving kubectl logs deployment/web
check 'port-forward'                              forward
check 'TokenReview of a projected token'          prints 'true system:serviceaccount:default:default' review my-service
other() { [[ $(review other) != true* ]]; }
check '  not for another audience'                other
check 'a StatefulSet with volumes'                kubectl rollout status statefulset/db --timeout 120s
check '  DNS of a pod of it'                      prints "$(value pod/db-1 .status.podIP)" client nslookup db-1.db.default.svc.cluster.local
check '  a pod deleted'                           kubectl delete pod db-1
check '  comes back'                              kubectl rollout status statefulset/db --timeout 60s
check '  with its data'                           prints 2 kubectl exec db-1 -- sh -c 'wc -l < /data/starts'
check '  whose volume another user may write'     prints 1000 kubectl exec db-1 -- stat -c %u /data/starts
check 'a CRD is established'                      kubectl wait --for condition=Established crd/things.check.tablemount.dev --timeout 30s
check '  an object of it'                         retry thing 1
check '  its CEL rule refuses'                    refused 'min is over max' thing 3
check 'helm install'                              chart
check '  values arrived'                          prints 1 value configmap/rel-cm .data.replicas
check '  upgrade'                                 helm upgrade rel "$folder/chart" --set replicas=2
check '  uninstall'                               helm uninstall rel
check 'a Job runs to its end'                     kubectl wait --for condition=Complete job/job --timeout 60s
check 'a memory limit ends a pod'                 kubectl wait --for 'jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled' pod/oom --timeout 30s
check 'deletion of all'                           kubectl delete -f "$here/check.yaml" --wait --timeout 60s
echo "$passed passed, $failed failed"
[ $failed = 0 ]
