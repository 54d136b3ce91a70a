{{- /*
Who gets which variables and flags. files/settings.yaml says it, made from the table of settings.
*/}}

{{- /* All flags by name: of `args`, of Cherry's `additionalCommands`, and of the values that stand for flags. As YAML. */}}
{{- define "windlass.flags" -}}
{{- $flags := deepCopy (.Values.args | default dict) }}
{{- range .Values.additionalCommands }}
  {{- $parts := splitn "=" 2 (trimPrefix "--" .) }}
  {{- $_ := set $flags $parts._0 ($parts._1 | default "") }}
{{- end }}
{{- if .Values.clouds }}
  {{- $_ := set $flags "cloud-provider" (join "," .Values.clouds) }}
  {{- if include "windlass.cherrySecret" . }}
    {{- $_ := set $flags "cloud-config" "/etc/cloud-sa/cloud-sa.json" }}
  {{- end }}
{{- end }}
{{- if .Values.networking.enabled }}
  {{- $_ := set $flags "cluster-cidr" .Values.networking.clusterCIDR }}
{{- end }}
{{- range $name, $value := $flags }}
  {{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ include "windlass.text" $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* A scalar as its author wrote it: whole numbers come as floats, which Go prints with an exponent when they are large. */}}
{{- define "windlass.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- /* A command and those of its flags that the values say, as a YAML array: `root`, `role`. */}}
{{- define "windlass.command" -}}
{{- $settings := .root.Files.Get "files/settings.yaml" | fromYaml }}
{{- $flags := include "windlass.flags" .root | fromYaml }}
{{- $args := list .role }}
{{- range $name, $value := $flags }}
  {{- if has (replace "_" "-" $name) (index $settings.flags $.role) }}
    {{- $args = append $args (empty $value | ternary (printf "--%s" $name) (printf "--%s=%s" $name $value)) }}
  {{- end }}
{{- end }}
{{- toYaml $args }}
{{- end }}

{{- /* `args` of a role. */}}
{{- define "windlass.args" -}}
{{- $args := include "windlass.command" . | fromYamlArray }}
{{- if eq (len $args) 1 }}
args: [{{ .role }}]
{{- else }}
args:
  {{- toYaml $args | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The doctor's command line beside the Pods that work, for a shell. `exec` knows the container's variables, not its flags. */}}
{{- define "windlass.doctor" -}}
{{- $words := list }}
{{- range include "windlass.command" (dict "root" . "role" "doctor") | fromYamlArray }}
  {{- $plain := regexMatch "^[A-Za-z0-9_%+=:,./@-]+$" . }}
  {{- $words = append $words ($plain | ternary . (printf "'%s'" (replace "'" `'\''` .))) }}
{{- end }}
{{- join " " $words }}
{{- end }}

{{- /* `env` of a role: what the chart gives it (`own`), then what the values say. One name never stands twice. */}}
{{- define "windlass.env" -}}
{{- $root := .root }}
{{- $settings := $root.Files.Get "files/settings.yaml" | fromYaml }}
{{- $mine := index $settings.env .role }}
{{- $hetzner := or (empty $root.Values.clouds) (has "hcloud" $root.Values.clouds) }}
{{- $env := deepCopy .own }}
{{- if and $hetzner (has .role (list "worker" "all")) }}
  {{- if $root.Values.networking.enabled }}{{ $_ := set $env "HCLOUD_NETWORK" $root.Values.networking.network }}{{ end }}
  {{- if $root.Values.robot.enabled }}{{ $_ := set $env "ROBOT_ENABLED" "true" }}{{ end }}
  {{- if not $root.Values.monitoring.enabled }}{{ $_ := set $env "HCLOUD_METRICS_ENABLED" "false" }}{{ end }}
{{- end }}
{{- range $name, $value := $root.Values.env }}
  {{- $elsewhere := and (not $hetzner) (regexMatch "^(HCLOUD|ROBOT)_" $name) }}
  {{- if and (or (has $name $mine) (not (has $name $settings.known))) (not $elsewhere) }}
    {{- $_ := set $env $name $value }}
  {{- end }}
{{- end }}
{{- range $name, $value := $env }}
  {{- if kindIs "map" $value }}
- name: {{ $name }}
    {{- if hasKey $value "value" }}
  value: {{ tpl (include "windlass.text" $value.value) $root | quote }}
    {{- else }}
  {{- tpl (toYaml $value) $root | nindent 2 }}
    {{- end }}
  {{- else if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ tpl (include "windlass.text" $value) $root | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* A key of the Secret that the roles share, for `own` above. */}}
{{- define "windlass.shared" -}}
valueFrom:
  secretKeyRef:
    name: {{ .root.Values.internalSecret | quote }}
    key: {{ .key }}
    {{- if .optional }}
    optional: true
    {{- end }}
{{- end }}

{{- /* Variables that open a server's pages to those who know them. As YAML. */}}
{{- define "windlass.openEnv" -}}
WINDLASS_DASHBOARD_PASSWORD:
  {{- include "windlass.shared" (dict "root" . "key" "WINDLASS_DASHBOARD_PASSWORD" "optional" true) | nindent 2 }}
WINDLASS_METRICS_TOKEN:
  {{- include "windlass.shared" (dict "root" . "key" "WINDLASS_METRICS_TOKEN" "optional" (not .Values.server.metricsToken)) | nindent 2 }}
{{- end }}
