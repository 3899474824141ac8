{{- define "scaletest.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 29 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 29 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 29 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Checks the names of this release's objects. */}}
{{- define "scaletest.checkNames" -}}
{{- $names := list (include "scaletest.fullname" .) -}}
{{- if .Values.redis.enabled }}{{ $names = append $names (include "scaletest.redisName" .) }}{{ end -}}
{{- if and .Values.redis.enabled (eq (first $names) (last $names)) -}}
{{- fail (printf "\nfullnameOverride: %s is the name of the release's Redis; choose another one" (first $names)) -}}
{{- end -}}
{{- range $names -}}
{{- if and (regexMatch "^[0-9]" .) (semverCompare "<1.36.0-0" $.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "\nServices would be named %s...: before Kubernetes 1.36 their names must begin with a letter; rename the release" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "scaletest.selector" -}}
app.kubernetes.io/name: scaletest
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "scaletest.labels" -}}
{{ include "scaletest.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{- include "scaletest.checkLabels" (dict "labels" . "what" "commonLabels") }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Fails if labels contain those that select our objects. Arguments: labels, what: the key of these labels. */}}
{{- define "scaletest.checkLabels" -}}
{{- range $label, $given := .labels -}}
{{- if regexMatch "^(scaletest/|helm[.]sh/chart$|app[.]kubernetes[.]io/(name|instance|component|version|managed-by)$)" $label -}}
{{- fail (printf "\n%s: %s is a label of the chart; choose another one" $.what $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of an object, and more labels. Arguments: root, labels, what: the key of these labels. */}}
{{- define "scaletest.moreLabels" -}}
{{- include "scaletest.checkLabels" . -}}
{{- $all := include "scaletest.labels" .root | fromYaml -}}
{{- toYaml (mergeOverwrite $all (.labels | default dict)) -}}
{{- end -}}

{{/* Labels of pods, without the version: an upgrade of the chart must not restart pods that are the same. */}}
{{- define "scaletest.podLabels" -}}
{{ include "scaletest.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
A queue's name as part of object names, unique among queues. "-worker" and "-client" in it lose their
dash: pods are counted by the name of a Deployment, with which no name of another queue's may begin.
*/}}
{{- define "scaletest.queueName" -}}
{{- if and (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .) (le (len .) 20) (not (regexMatch "-(worker|client)" .)) -}}
{{- . -}}
{{- else -}}
{{- $plain := regexReplaceAll "-+(worker|client)" (regexReplaceAll "[^a-z0-9]+" (lower .) "-") "$1" -}}
{{- printf "%s-%s" ($plain | trunc 13 | trimAll "-") (sha256sum . | trunc 6) -}}
{{- end -}}
{{- end -}}

{{/*
The name of a queue's object. Arguments: root, name, role. At most 57 characters, since Kubernetes cuts
names of pods after 58 and adds a suffix.
*/}}
{{- define "scaletest.object" -}}
{{- printf "%s-%s-%s" (include "scaletest.fullname" .root) (include "scaletest.queueName" .name) .role -}}
{{- end -}}

{{/* A queue with its defaults, as YAML, with checks that a schema cannot do. Arguments: root, name. */}}
{{- define "scaletest.queue" -}}
{{- $queue := mergeOverwrite (deepCopy .root.Values.queueDefaults) (deepCopy (index .root.Values.queues .name | default dict)) -}}
{{- if not (regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" .name) -}}
{{- fail (printf "\nqueues.%s: a queue's name may have only letters, digits, '.', '_' and '-', at most 100" .name) -}}
{{- end -}}
{{- $scaling := $queue.autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "\nqueues.%s.autoscaling: minReplicas is more than maxReplicas" .name) -}}
{{- end -}}
{{- if and (hasPrefix "hpa" $scaling.kind) (eq (int $scaling.minReplicas) 0) (semverCompare "<1.37.0-0" .root.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "\nqueues.%s.autoscaling.minReplicas is 0: an HPA scales to zero since Kubernetes 1.37, but this is %s; set kind: keda" .name .root.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (eq $scaling.source "redis") (has $scaling.kind (list "keda" "job")) (not (has $scaling.metric (list "waiting" "running" "demand"))) -}}
{{- fail (printf "\nqueues.%s.autoscaling.metric: KEDA cannot read %s from Redis; set source: exporter" .name $scaling.metric) -}}
{{- end -}}
{{- if and (ne $scaling.kind "none") (ne $scaling.kind "cron") (or (hasPrefix "hpa" $scaling.kind) (eq $scaling.source "exporter")) (not .root.Values.exporter.enabled) -}}
{{- fail (printf "\nqueues.%s.autoscaling needs the exporter: set exporter.enabled" .name) -}}
{{- end -}}
{{- if and (eq $scaling.source "redis") (or (eq $scaling.kind "job") (and (eq $scaling.kind "keda") (ne $scaling.metric "demand"))) (ne (float64 $scaling.target) (floor $scaling.target)) -}}
{{- fail (printf "\nqueues.%s.autoscaling.target is %v: KEDA requires a whole number for a list in Redis; set source: exporter" .name $scaling.target) -}}
{{- end -}}
{{- if and (eq $scaling.metric "running") (not (has $scaling.kind (list "none" "cron"))) (include "scaletest.mayBeEmpty" $queue) -}}
{{- fail (printf "\nqueues.%s.autoscaling.metric is running: without workers nothing runs, so it would never scale up from zero; set metric: demand" .name) -}}
{{- end -}}
{{- include "scaletest.checkLabels" (dict "labels" $queue.podLabels "what" (printf "queues.%s.podLabels" .name)) -}}
{{- if gt (int $queue.client.parallel) (int $queue.client.maxParallel) -}}
{{- fail (printf "\nqueues.%s.client: parallel is more than maxParallel" .name) -}}
{{- end -}}
{{- if and $queue.client.enabled (not $queue.command) (not $queue.client.arguments) -}}
{{- fail (printf "\nqueues.%s.client.arguments is empty: without a command the workers sleep, and the arguments must have the seconds, e.g. [\"2\"]" .name) -}}
{{- end -}}
{{- if and $queue.device.resource $queue.device.deviceClass -}}
{{- fail (printf "\nqueues.%s.device: resource and deviceClass exclude each other" .name) -}}
{{- end -}}
{{- if and $queue.device.deviceClass (semverCompare "<1.34.0-0" .root.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "\nqueues.%s.device.deviceClass needs Kubernetes 1.34, but this is %s; set device.resource" .name .root.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- toYaml $queue -}}
{{- end -}}

{{- define "scaletest.image" -}}
{{- $image := mergeOverwrite (deepCopy .root.Values.image) (.image | default dict) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Run time of a request as far as the chart knows it: the seconds of a sleep. Argument: a queue. */}}
{{- define "scaletest.seconds" -}}
{{- if and (not .command) .client.arguments (regexMatch "^[0-9]+([.][0-9]+)?$" (first .client.arguments)) -}}
{{- first .client.arguments -}}
{{- end -}}
{{- end -}}

{{- define "scaletest.grace" -}}
{{- if kindIs "invalid" .graceSeconds -}}
{{- if gt (float64 .timeLimit) 0.0 -}}{{ add (ceil (float64 .timeLimit)) 20 }}{{- else -}}60{{- end -}}
{{- else -}}{{ int .graceSeconds }}{{- end -}}
{{- end -}}

{{/* A number without an exponent, which some programs do not read: 1000000, not 1e+06. */}}
{{- define "scaletest.number" -}}
{{- if eq (float64 .) (floor .) }}{{ int64 (float64 .) }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* host:port, as in [fd00::1]:6379. Arguments: host, port. */}}
{{- define "scaletest.address" -}}
{{- printf (contains ":" .host | ternary "[%s]:%d" "%s:%d") (trimAll "[]" .host) (int .port) -}}
{{- end -}}

{{/* The same name as in the subchart, whose templates do not exist when it is disabled. */}}
{{- define "scaletest.redisName" -}}
{{- printf "%s-redis" (.Release.Name | trunc 40 | trimSuffix "-") -}}
{{- end -}}

{{- define "scaletest.redisSecret" -}}
{{- if .Values.redis.enabled -}}
{{- .Values.redis.existingSecret | default (include "scaletest.redisName" .) -}}
{{- else -}}
{{- .Values.externalRedis.existingSecret -}}
{{- end -}}
{{- end -}}

{{/*
An annotation of pods that changes when the chart generates new passwords for its Redis, so that pods with
old ones restart. Empty if the passwords are in a secret of the user.
*/}}
{{- define "scaletest.passwords" -}}
{{- if and .Values.redis.enabled (not .Values.redis.existingSecret) -}}
scaletest/redis-passwords: {{ (include "redis.login" (dict "Values" .Values.redis "Release" .Release) | fromJson).generation | quote }}
{{- end -}}
{{- end -}}

{{- define "scaletest.checkOwn" -}}
{{- if ne .Values.externalRedis.keyPrefix "rq" -}}
{{- fail (printf "\nexternalRedis.keyPrefix is %s: the chart's own Redis is not shared, and its users may access rq:* only; leave keyPrefix out, or set redis.enabled to false" .Values.externalRedis.keyPrefix) -}}
{{- end -}}
{{- end -}}

{{- define "scaletest.checkExternal" -}}
{{- $e := .Values.externalRedis -}}
{{- if not (or $e.host $e.sentinel.nodes $e.urlKey) -}}
{{- fail "\nredis.enabled is false: set the address of Redis with externalRedis.host, externalRedis.sentinel.nodes or externalRedis.urlKey" -}}
{{- end -}}
{{- if and $e.username (not $e.existingSecret) -}}
{{- fail "\nexternalRedis.username needs externalRedis.existingSecret with its password" -}}
{{- end -}}
{{- if and $e.urlKey (not $e.existingSecret) -}}
{{- fail "\nexternalRedis.urlKey needs externalRedis.existingSecret" -}}
{{- end -}}
{{- end -}}

{{/* Environment with the address of Redis. Arguments: root, role. */}}
{{- define "scaletest.redisEnv" -}}
{{- if .root.Values.redis.enabled -}}
{{- include "scaletest.checkOwn" .root -}}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "scaletest.redisSecret" .root | quote }}, key: password-{{ .role }}}}
- name: SCALETEST_REDIS_URL
  value: redis://{{ .role }}:$(REDIS_PASSWORD)@{{ include "scaletest.redisName" .root }}:6379/0
{{- else -}}
{{- include "scaletest.checkExternal" .root -}}
{{- $e := .root.Values.externalRedis -}}
{{- if $e.urlKey -}}
- name: SCALETEST_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ $e.existingSecret | quote }}, key: {{ $e.urlKey | quote }}}}
{{- else -}}
{{- $login := "" -}}
{{- if $e.existingSecret -}}
{{- $login = printf "%s:$(REDIS_PASSWORD)@" ($e.username | urlquery) -}}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $e.existingSecret | quote }}, key: {{ $e.passwordKey | quote }}}}
{{ end -}}
{{- $query := list -}}
{{- if $e.tls.enabled -}}
{{- if $e.tls.existingSecret }}{{ $query = append $query "ssl_ca_certs=/etc/scaletest/redis-tls/ca.crt" }}{{ end -}}
{{- if $e.tls.insecureSkipVerify }}{{ $query = concat $query (list "ssl_cert_reqs=none" "ssl_check_hostname=false") }}{{ end -}}
{{- end -}}
- name: SCALETEST_REDIS_URL
{{- if $e.sentinel.nodes }}
  {{- if $e.tls.enabled }}{{ $query = append $query "ssl=true" }}{{ end }}
  value: {{ printf "sentinel://%s%s/%s/%d" $login (join "," $e.sentinel.nodes) $e.sentinel.service (int $e.database) }}{{ with $query }}?{{ join "&" . }}{{ end }}
{{- else }}
  value: {{ printf "%s://%s%s/%d" (ternary "rediss" "redis" $e.tls.enabled) $login (include "scaletest.address" $e) (int $e.database) }}{{ with $query }}?{{ join "&" . }}{{ end }}
{{- end }}
{{- end -}}
{{- if ne $e.keyPrefix "rq" }}
- name: RQ_KEY_PREFIX
  value: {{ $e.keyPrefix | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Prefix of our keys in Redis. */}}
{{- define "scaletest.ownKeys" -}}
{{- if or .Values.redis.enabled (eq .Values.externalRedis.keyPrefix "rq") -}}scaletest{{- else -}}{{ .Values.externalRedis.keyPrefix }}:scaletest{{- end -}}
{{- end -}}

{{- define "scaletest.hasRedisTls" -}}
{{- if and (not .Values.redis.enabled) .Values.externalRedis.tls.enabled .Values.externalRedis.tls.existingSecret -}}yes{{- end -}}
{{- end -}}

{{- define "scaletest.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if include "scaletest.hasRedisTls" . }}
- {name: redis-tls, mountPath: /etc/scaletest/redis-tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "scaletest.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- if include "scaletest.hasRedisTls" . }}
- {name: redis-tls, secret: {secretName: {{ .Values.externalRedis.tls.existingSecret | quote }}}}
{{- end }}
{{- end -}}

{{- define "scaletest.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "scaletest.podSecurity" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "scaletest.pull" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The queue that helm test validates. */}}
{{- define "scaletest.testQueue" -}}
{{- $found := .Values.test.queue -}}
{{- if and $found (not (and (hasKey .Values.queues $found) (include "scaletest.queue" (dict "root" . "name" $found) | fromYaml).client.enabled)) -}}
{{- fail (printf "\ntest.queue is %s: there is no such queue with a client" $found) -}}
{{- end -}}
{{- if and $found (not (has (include "scaletest.queue" (dict "root" . "name" $found) | fromYaml).autoscaling.kind (list "none" "keda"))) -}}
{{- fail (printf "\ntest.queue is %s: a validation requires workers without an autoscaler, or with KEDA" $found) -}}
{{- end -}}
{{- range $name, $given := .Values.queues -}}
{{- $queue := include "scaletest.queue" (dict "root" $ "name" $name) | fromYaml -}}
{{- if and (not $found) $queue.client.enabled (has $queue.autoscaling.kind (list "none" "keda")) -}}{{- $found = $name -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}
