{{- define "redis.fullname" -}}
{{- printf "%s-redis" (.Release.Name | trunc 40 | trimSuffix "-") -}}
{{- end -}}

{{- define "redis.selector" -}}
app.kubernetes.io/name: redis
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "redis.labels" -}}
{{ include "redis.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A quantity of Kubernetes in bytes. Arguments: value; what: its key. */}}
{{- define "redis.bytes" -}}
{{- $text := toString .value -}}
{{- if or (kindIs "float64" .value) (kindIs "int64" .value) (kindIs "int" .value) -}}
{{- $text = printf "%.0f" (float64 .value) -}}
{{- end -}}
{{- if not (regexMatch "^([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+|[KMGTPE]i|[munkMGTPE])?$" $text) -}}
{{- fail (printf "\n%s is %q, which is not a quantity of memory; write e.g. 512Mi, 1Gi or 500M" .what $text) -}}
{{- end -}}
{{- $decimal := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $binary := dict "Ki" 0x1p10 "Mi" 0x1p20 "Gi" 0x1p30 "Ti" 0x1p40 "Pi" 0x1p50 "Ei" 0x1p60 -}}
{{- $unit := regexFind "([KMGTPE]i|[munkMGTPE])$" $text -}}
{{- $number := trimSuffix $unit $text -}}
{{- mulf (float64 $number) (index (merge $decimal $binary) $unit | default 1.0) | floor | int64 -}}
{{- end -}}

{{/*
The server's maxmemory in bytes: the value, else half of the memory limit; empty without both.
Half, because a rewrite of the append-only file forks, and data that changes meanwhile is in memory twice.
Measured with requests that all change during the rewrite: half uses at most 80 % of the limit, three fifths
86 %, and with three quarters the kernel kills the server, and all waiting requests are lost.
*/}}
{{- define "redis.maxmemory" -}}
{{- $own := .Values.maxmemory -}}
{{- if and (not (kindIs "invalid" $own)) (ne (toString $own) "") -}}
{{- include "redis.bytes" (dict "value" $own "what" "redis.maxmemory") -}}
{{- else -}}
{{- $limit := ((.Values.resources | default dict).limits | default dict).memory -}}
{{- if not (kindIs "invalid" $limit) -}}
{{- $bytes := include "redis.bytes" (dict "value" $limit "what" "redis.resources.limits.memory") | int64 -}}
{{- if lt $bytes 33554432 -}}
{{- fail (printf "\nredis.resources.limits.memory is %v, %d bytes: too little for Redis; set 32Mi or more (m is a thousandth, Mi a mebibyte)" $limit $bytes) -}}
{{- end -}}
{{- div $bytes 2 -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "redis.conf" -}}
port 6379
dir /data
aclfile /etc/redis-users/users.acl
appendonly {{ .Values.persistence.enabled | ternary "yes" "no" }}
appendfsync everysec
save ""
# a request that was accepted is never thrown away
maxmemory-policy noeviction
{{- with include "redis.maxmemory" . }}
# what does not fit is refused before the kernel ends the server
maxmemory {{ . }}
{{- end }}
{{- with .Values.config }}
{{ . }}
{{- end }}
{{- end -}}

{{/*
The passwords of the chart's secret as JSON, and a generation: a random text that changes with any of them, and
restarts the pods. They are generated once in a rendering and stored in the values. Without a cluster to look
them up (helm template) each rendering generates new ones.
*/}}
{{- define "redis.login" -}}
{{- if not (hasKey .Values "drawn") -}}
{{- $kept := ((lookup "v1" "Secret" .Release.Namespace (include "redis.fullname" .)) | default dict).data | default dict -}}
{{- $passwords := dict -}}
{{- $generation := index $kept "generation" | default "" | b64dec | default "first" -}}
{{- range $role := concat (list "admin") (keys .Values.users) -}}
{{- $password := index $kept (printf "password-%s" $role) | default "" | b64dec -}}
{{- if not $password -}}
{{- $password = randAlphaNum 32 -}}
{{- $generation = randAlphaNum 16 -}}
{{- end -}}
{{- $_ := set $passwords $role $password -}}
{{- end -}}
{{- $_ := set .Values "drawn" (dict "passwords" $passwords "generation" $generation) -}}
{{- end -}}
{{- toJson .Values.drawn -}}
{{- end -}}
