{{- /* Keys that have to be in the Secret that roles share, as a YAML array. */}}
{{- define "windlass.sharedKeys" -}}
{{- $split := eq .Values.mode "split" }}
{{- if $split }}
- WINDLASS_WEBHOOK_KEYS
{{- end }}
{{- if and $split .Values.redis.enabled }}
- WINDLASS_REDIS_PASSWORD
{{- end }}
{{- if .Values.server.metricsToken }}
- WINDLASS_METRICS_TOKEN
{{- end }}
{{- end }}

{{- /* Secrets that settings come from, by name, with their keys. As YAML. */}}
{{- define "windlass.secrets" -}}
{{- $secrets := dict }}
{{- $role := eq .Values.mode "split" | ternary "worker" "all" }}
{{- range include "windlass.env" (dict "root" . "role" $role "own" dict) | fromYamlArray }}
  {{- with dig "valueFrom" "secretKeyRef" dict . }}
    {{- $_ := set $secrets .name (append (get $secrets .name | default list) .key | uniq) }}
  {{- end }}
{{- end }}
{{- range .Values.envFrom }}
  {{- with .secretRef }}
    {{- $_ := set $secrets .name (append (get $secrets .name | default list) "settings by their names") }}
  {{- end }}
{{- end }}
{{- $cherry := include "windlass.cherrySecret" . }}
{{- if and $cherry (not (include "windlass.cherryMade" .)) }}
  {{- $_ := set $secrets $cherry (append (get $secrets $cherry | default list) "cloud-sa.json") }}
{{- end }}
{{- with include "windlass.sharedKeys" . | fromYamlArray }}
  {{- $_ := set $secrets $.Values.internalSecret (concat (get $secrets $.Values.internalSecret | default list) . | uniq) }}
{{- end }}
{{- toYaml $secrets }}
{{- end }}
