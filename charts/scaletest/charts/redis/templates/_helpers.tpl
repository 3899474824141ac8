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
