{{- define "windlass.labels" -}}
app.kubernetes.io/name: windlass
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* metadata of a Pod: `root`, `component`. */}}
{{- define "windlass.podMetadata" -}}
labels:
  {{- toYaml (merge (include "windlass.labels" .component | fromYaml) .root.Values.podLabels) | nindent 2 }}
{{- $annotations := deepCopy .root.Values.podAnnotations }}
{{- if and (include "windlass.cherryMade" .root) (has .component (list "worker" "all")) }}
  {{- $_ := set $annotations "checksum/config" (toJson .root.Values.config | sha256sum) }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What all Pods have in common: `root`, `account` if it has one, `graceful` if runs have to end, `apartFrom` of another install, `avoids` nodes
with a label. */}}
{{- define "windlass.pod" -}}
{{- if .account }}
serviceAccountName: {{ .account }}
{{- else }}
automountServiceAccountToken: false
{{- end }}
{{- with concat .root.Values.image.pullSecrets (.root.Values.imagePullSecrets | default list) }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
# A cloud controller, and what it needs, runs before cluster DNS and pod-to-pod routes do.
hostNetwork: true
dnsPolicy: Default
{{- if .graceful }}
# Longer than WINDLASS_GRACE_PERIOD, so that runs end or are handed back.
terminationGracePeriodSeconds: 45
{{- end }}
tolerations:
  - key: node.cloudprovider.kubernetes.io/uninitialized
    operator: Exists
  # A new node is not ready for as long as its network waits for us.
  - key: node.kubernetes.io/not-ready
    operator: Exists
  # One that does not answer any more is left soon.
  - key: node.kubernetes.io/unreachable
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 30
  - key: node-role.kubernetes.io/control-plane
    operator: Exists
  - key: CriticalAddonsOnly
    operator: Exists
  {{- with concat .root.Values.additionalTolerations (.root.Values.tolerations | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "windlass.affinity" . }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- end }}

{{- define "windlass.affinity" }}
{{- $affinity := deepCopy .root.Values.affinity }}
{{- if .apartFrom }}
  {{- $labels := include "windlass.labels" .apartFrom | fromYaml }}
  {{- $term := dict "labelSelector" (dict "matchLabels" $labels) "namespaceSelector" dict "topologyKey" "kubernetes.io/os" }}
  {{- $anti := $affinity.podAntiAffinity | default dict }}
  {{- $terms := append ($anti.requiredDuringSchedulingIgnoredDuringExecution | default list) $term }}
  {{- $_ := set $anti "requiredDuringSchedulingIgnoredDuringExecution" $terms }}
  {{- $_ := set $affinity "podAntiAffinity" $anti }}
# Workers of two installs have no Redis in common, and so no lock: those of one begin when the last Pod of the other is
# gone. All Linux nodes together are one place here.
{{- end }}
{{- if .avoids }}
  {{- $nodes := $affinity.nodeAffinity | default dict }}
  {{- $preference := dict "matchExpressions" (list (dict "key" .avoids "operator" "DoesNotExist")) }}
  {{- $preferred := $nodes.preferredDuringSchedulingIgnoredDuringExecution | default list }}
  {{- $preferred = append $preferred (dict "weight" 100 "preference" $preference) }}
  {{- $_ := set $nodes "preferredDuringSchedulingIgnoredDuringExecution" $preferred }}
  {{- $_ := set $affinity "nodeAffinity" $nodes }}
{{- end }}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The container of a role: `root`, `role`, `port`, `own` (variables), `resources`. A server is asked by other nodes. */}}
{{- define "windlass.container" -}}
{{- $works := or (eq .role "worker") (eq .role "all") }}
{{- $open := or (eq .role "server") .root.Values.monitoring.podMonitor.enabled }}
{{- $own := set .own "WINDLASS_LISTEN" (printf "%s:%v" ($open | ternary "" "127.0.0.1") .port) }}
{{- if include "windlass.credentials" . | fromYamlArray }}
  {{- $_ := set $own "WINDLASS_CREDENTIALS_DIR" "/etc/windlass/credentials" }}
{{- end }}
name: windlass
image: {{ include "windlass.image" .root | quote }}
{{- with .root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- include "windlass.args" . | trim | nindent 0 }}
env:
  {{- include "windlass.env" (dict "root" .root "role" .role "own" $own) | trim | nindent 2 }}
{{- if and $works .root.Values.envFrom }}
# Their keys are settings: HCLOUD_TOKEN, HCLOUD_NETWORK, ROBOT_USER, CHERRY_API_KEY, CHERRY_PROJECT_ID, …
envFrom:
  {{- toYaml .root.Values.envFrom | nindent 2 }}
{{- end }}
ports:
  - name: metrics
    containerPort: {{ .port }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .resources | nindent 2 }}
readinessProbe:
  httpGet:
    {{- if not $open }}
    host: 127.0.0.1
    {{- end }}
    path: /readyz
    port: {{ .port }}
  periodSeconds: 5
livenessProbe:
  httpGet:
    {{- if not $open }}
    host: 127.0.0.1
    {{- end }}
    path: /healthz
    port: {{ .port }}
  periodSeconds: 10
  failureThreshold: 6
{{- with include "windlass.mounts" . | fromYamlArray }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Files of a role, as arrays: `root`, `role`. Those at the top of the values are for the Pods that work, since they hold credentials. */}}
{{- define "windlass.mounts" -}}
{{- $works := has .role (list "worker" "all") }}
{{- $values := $works | ternary .root.Values (index .root.Values .role) }}
{{- $mounts := concat ($values.extraVolumeMounts | default list) ($values.volumeMounts | default list) }}
{{- if and $works (include "windlass.cherrySecret" .root) }}
  {{- $mounts = prepend $mounts (dict "name" "cherry" "mountPath" "/etc/cloud-sa" "readOnly" true) }}
{{- end }}
{{- if include "windlass.credentials" . | fromYamlArray }}
  {{- $mounts = prepend $mounts (dict "name" "credentials" "mountPath" "/etc/windlass/credentials" "readOnly" true) }}
{{- end }}
{{- toYaml $mounts }}
{{- end }}

{{- define "windlass.volumes" -}}
{{- $works := has .role (list "worker" "all") }}
{{- $values := $works | ternary .root.Values (index .root.Values .role) }}
{{- $volumes := concat ($values.extraVolumes | default list) ($values.volumes | default list) }}
{{- if and $works (include "windlass.cherrySecret" .root) }}
  {{- $volumes = prepend $volumes (dict "name" "cherry" "secret" (dict "secretName" (include "windlass.cherrySecret" .root))) }}
{{- end }}
{{- with include "windlass.credentials" . | fromYamlArray }}
  {{- $volumes = prepend $volumes (dict "name" "credentials" "projected" (dict "sources" .)) }}
{{- end }}
{{- toYaml $volumes }}
{{- end }}

{{- /*
Secrets that credentials come from, as files besides: variables stay what they were when the Pod began, files follow a change. As sources of a
volume: `root`, `role`.
*/}}
{{- define "windlass.credentials" -}}
{{- $sources := list }}
{{- if has .role (list "worker" "all") }}
  {{- $root := .root }}
  {{- $credentials := ($root.Files.Get "files/settings.yaml" | fromYaml).credentials }}
  {{- $hetzner := or (empty $root.Values.clouds) (has "hcloud" $root.Values.clouds) }}
  {{- range $root.Values.envFrom }}
    {{- with .secretRef }}
      {{- $sources = append $sources (dict "secret" (dict "name" .name "optional" true)) }}
    {{- end }}
  {{- end }}
  {{- range $name, $value := $root.Values.env }}
    {{- if and (has $name $credentials) (kindIs "map" $value) (or $hetzner (not (regexMatch "^(HCLOUD|ROBOT)_" $name))) }}
      {{- with dig "valueFrom" "secretKeyRef" dict $value }}
        {{- $items := list (dict "key" .key "path" $name) }}
        {{- $sources = append $sources (dict "secret" (dict "name" .name "optional" true "items" $items)) }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- $sources = tpl (toYaml $sources) $root | fromYamlArray }}
{{- end }}
{{- toYaml $sources }}
{{- end }}

{{- /* At most one Pod of a role is away at a time: `root`, `component`. */}}
{{- define "windlass.budget" }}
{{- if .root.Values.podDisruptionBudgets }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: windlass-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "windlass.labels" .component | nindent 6 }}
{{- end }}
{{- end }}
