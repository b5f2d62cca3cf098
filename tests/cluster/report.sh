#!/bin/sh
# report.sh: prints what explains a failed test: the cluster's pods, the project's objects, the last events, the ends of the logs.
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
export KUBECONFIG="$STATE/admin.conf"
echo '--- pods'
kubectl get pods --all-namespaces --output wide
echo '--- custom resources'
kubectl get tableclusters,tables --all-namespaces --output yaml
echo '--- events'
kubectl get events --all-namespaces --sort-by .metadata.creationTimestamp | tail -n 40
kubectl get pods --all-namespaces --no-headers --output custom-columns=NS:.metadata.namespace,NAME:.metadata.name | while read -r namespace name; do
	echo "--- log of pod $namespace/$name"
	kubectl logs --namespace "$namespace" "$name" --all-containers --prefix --tail 40
done
echo '--- kubelet'
tail -n 10 "$STATE/log/kubelet"
