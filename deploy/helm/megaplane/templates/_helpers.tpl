{{- define "megaplane.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "megaplane.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "megaplane.labels" -}}
{{ include "megaplane.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "megaplane.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The Secret that scheduler and others take their kubeconfig from; empty in mode cluster. */ -}}
{{- define "megaplane.kubeconfigSecret" -}}
{{- if eq .Values.target.mode "own" }}{{ include "megaplane.name" . }}-kubeconfig{{ else if eq .Values.target.mode "secret" }}{{ required "target.secret: names the Secret with the kubeconfig in mode secret" .Values.target.secret }}{{ end }}
{{- end }}

{{- define "megaplane.serverSecret" -}}
{{ .Values.apiserver.existingSecret | default (printf "%s-apiserver" (include "megaplane.name" .)) }}
{{- end }}

{{- define "megaplane.etcdServers" -}}
{{- if .Values.apiserver.etcdServers }}{{ .Values.apiserver.etcdServers }}{{ else if .Values.store.enabled }}{{ ternary "https" "http" (ne .Values.store.tlsSecret "") }}://{{ include "megaplane.name" . }}-store:2379{{ end }}
{{- end }}

{{- /* A pod's template. root; part; args; probe {port, path, scheme}; volumes; mounts; ports; resources; env. */ -}}
{{- define "megaplane.pod" -}}
metadata:
  labels:
    {{- include "megaplane.labels" . | nindent 4 }}
    {{- with .root.Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    {{- with .checksum }}
    checksum/config: {{ . }}
    {{- end }}
    {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ .account | default "default" }}
  automountServiceAccountToken: {{ ne (.account | default "") "" }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: { type: RuntimeDefault }
  terminationGracePeriodSeconds: 15
  containers:
    - name: {{ .part }}
      image: {{ include "megaplane.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: {{ toYaml .args | nindent 8 }}
      env:
        - name: POD_IP
          valueFrom: { fieldRef: { fieldPath: status.podIP } }
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      {{- with .ports }}
      ports: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- with .probe }}
      readinessProbe:
        httpGet: {{ toYaml . | nindent 10 }}
        periodSeconds: 5
        failureThreshold: 3
      livenessProbe:
        httpGet: {{ toYaml (merge (dict "path" "/livez") .) | nindent 10 }}
        initialDelaySeconds: 30
        periodSeconds: 10
        failureThreshold: 6
      {{- end }}
      {{- with .resources }}
      resources: {{ toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- with .mounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - { name: tmp, emptyDir: {} }
    {{- with .volumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* A Deployment of a part that works for the target cluster. root; part; args; replicas; probe; values. */ -}}
{{- define "megaplane.client" -}}
{{- $name := include "megaplane.name" .root }}
{{- $secret := include "megaplane.kubeconfigSecret" .root }}
{{- $volumes := .volumes | default list }}
{{- $mounts := concat (list (dict "name" "kubeconfig" "mountPath" "/etc/megaplane" "readOnly" true)) (.mounts | default list) }}
{{- if $secret }}
{{- $volumes = prepend $volumes (dict "name" "kubeconfig" "secret" (dict "secretName" $secret)) }}
{{- else }}
{{- $volumes = prepend $volumes (dict "name" "kubeconfig" "configMap" (dict "name" (printf "%s-target" $name))) }}
{{- end }}
{{- $account := "" }}
{{- if not $secret }}{{ $account = printf "%s-%s" $name .part }}{{ end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}-{{ .part }}
  labels:
    {{- include "megaplane.labels" . | nindent 4 }}
spec:
  replicas: {{ .replicas | default 1 }}
  selector:
    matchLabels:
      {{- include "megaplane.selector" . | nindent 6 }}
  template:
    {{- $pod := dict "root" .root "part" .part "args" (concat .args .values.extraArgs) "probe" .probe "ports" .ports "resources" .values.resources "volumes" $volumes "mounts" $mounts "account" $account "checksum" .checksum }}
    {{- include "megaplane.pod" $pod | nindent 4 }}
{{- end }}

{{- /* The volume of a StatefulSet's data: volumes of pods where it does not persist. */ -}}
{{- define "megaplane.claim" -}}
- metadata: { name: data }
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources: { requests: { storage: {{ .size }} } }
{{- end }}
