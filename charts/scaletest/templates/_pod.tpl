{{/* An init container that declares a queue. Arguments: root, name, queue, role, image. */}}
{{- define "scaletest.declare" -}}
- name: {{ eq .role "exporter" | ternary (printf "declare-%s" (include "scaletest.queueName" .name)) "declare" }}
  image: {{ include "scaletest.image" . | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: [queue, add, {{ .name | quote }}, --maximum, {{ .queue.maximum | int64 | quote }}, --note, {{ .queue.note | quote }}]
  env: {{ include "scaletest.redisEnv" (dict "root" .root "role" .role) | nindent 4 }}
  securityContext: {{ include "scaletest.containerSecurity" .root | nindent 4 }}
  resources: {requests: {cpu: 50m, memory: 96Mi}, limits: {memory: 256Mi}}
  volumeMounts: {{ include "scaletest.mounts" .root | nindent 4 }}
{{- end -}}

{{/* Whether a queue may have no workers, so that no worker declares it. */}}
{{- define "scaletest.mayBeEmpty" -}}
{{- $kind := .autoscaling.kind -}}
{{- if or (has $kind (list "job" "cron")) (eq 0 (int (eq $kind "none" | ternary .replicas .autoscaling.minReplicas))) -}}yes{{- end -}}
{{- end -}}

{{/* The pod of a queue's worker. Arguments: root, name, queue, burst. */}}
{{- define "scaletest.workerPod" -}}
{{- $root := .root -}}
{{- $queue := .queue -}}
{{- $grace := int (include "scaletest.grace" $queue) -}}
metadata:
  labels:
    {{- include "scaletest.selector" $root | nindent 4 }}
    app.kubernetes.io/component: worker
    scaletest/queue: {{ include "scaletest.queueName" .name | quote }}
    scaletest/redis: "true"
    {{- with merge (deepCopy ($queue.podLabels | default dict)) ($root.Values.commonLabels | default dict) }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with mergeOverwrite (deepCopy ($queue.podAnnotations | default dict)) (include "scaletest.passwords" $root | fromYaml) }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $grace }}
  {{- include "scaletest.pull" $root | nindent 2 }}
  {{- if .burst }}
  restartPolicy: Never
  {{- end }}
  securityContext:
    {{- include "scaletest.podSecurity" $root | nindent 4 }}
    {{- with $queue.supplementalGroups }}
    # groups of the device files on the nodes; besides its resource a device needs nothing else
    supplementalGroups: {{ toJson . }}
    {{- end }}
    {{- if not (kindIs "invalid" $queue.runAsUser) }}
    runAsUser: {{ int $queue.runAsUser }}
    {{- end }}
  initContainers:
    {{- include "scaletest.declare" (dict "root" $root "name" .name "queue" $queue "role" "worker" "image" $queue.image) | nindent 4 }}
  containers:
    - name: worker
      image: {{ include "scaletest.image" (dict "root" $root "image" $queue.image) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        - worker
        - {{ printf "--queue=%s" .name | quote }}
        - --grace={{ max 1 (sub $grace 10) }}s
        - --node-env=NODE_NAME
        - --pod-env=POD_NAME
        {{- if gt (float64 $queue.timeLimit) 0.0 }}
        - --time-limit={{ $queue.timeLimit }}s
        {{- end }}
        {{- with $queue.device.glob }}
        - {{ printf "--device-glob=%s" . | quote }}
        {{- end }}
        {{- with $queue.directory }}
        - {{ printf "--directory=%s" . | quote }}
        {{- end }}
        {{- if $queue.nullInput }}
        - --null-input
        {{- end }}
        {{- if $queue.nullOutput }}
        - --null-output
        {{- end }}
        {{- if $queue.ignoreArguments }}
        - --ignore-arguments
        {{- end }}
        {{- if $queue.allowCommands }}
        - --allow-commands
        {{- end }}
        {{- if $queue.scheduler }}
        - --with-scheduler
        {{- end }}
        {{- if .burst }}
        - --burst
        {{- end }}
        {{- range $queue.extraArguments }}
        - {{ . | quote }}
        {{- end }}
        {{- with $queue.command }}
        - --
        {{- range . }}
        - {{ . | quote }}
        {{- end }}
        {{- end }}
      env:
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- include "scaletest.redisEnv" (dict "root" $root "role" "worker") | nindent 8 }}
        {{- with $queue.env }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- if not .burst }}
      # the worker has started when it is registered in Redis; later a worker that ends is restarted anyway
      startupProbe:
        exec:
          command: [sh, -c, {{ printf "scaletest queue show %s --format json | grep -q \"\\\"$HOSTNAME-\"" .name | quote }}]
        periodSeconds: 3
        timeoutSeconds: 15
        failureThreshold: 60
      {{- end }}
      securityContext: {{ include "scaletest.containerSecurity" $root | nindent 8 }}
      resources: {{ include "scaletest.workerResources" . | nindent 8 }}
      volumeMounts:
        {{- include "scaletest.mounts" $root | nindent 8 }}
        {{- with $queue.volumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  {{- if $queue.device.deviceClass }}
  resourceClaims:
    - name: device
      resourceClaimTemplateName: {{ include "scaletest.object" (dict "root" $root "name" .name "role" "worker") }}
  {{- end }}
  volumes:
    {{- include "scaletest.volumes" $root | nindent 4 }}
    {{- with $queue.volumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $queue.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $queue.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $queue.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $queue.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $queue.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  {{- if not .burst }}
  topologySpreadConstraints:
    {{- if kindIs "invalid" $queue.topologySpreadConstraints }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "scaletest.selector" $root | nindent 10 }}
          scaletest/queue: {{ include "scaletest.queueName" .name | quote }}
    {{- else }}
    {{- toYaml $queue.topologySpreadConstraints | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}

{{- define "scaletest.workerResources" -}}
{{- $resources := deepCopy .queue.resources -}}
{{- $device := .queue.device -}}
{{- if $device.resource -}}
{{- $resources = mergeOverwrite $resources (dict "limits" (dict $device.resource (int $device.count))) -}}
{{- end -}}
{{- if $device.deviceClass -}}
{{- $resources = set $resources "claims" (list (dict "name" "device")) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}
