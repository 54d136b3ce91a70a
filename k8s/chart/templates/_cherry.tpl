{{- /* Whether the chart makes the Secret with `cloud-sa.json`, as that of the replaced controller did. */}}
{{- define "windlass.cherryMade" -}}
{{- if and .Values.config (ne (toString .Values.configSecret.create) "false") }}yes{{ end }}
{{- end }}

{{- /* The Secret with `cloud-sa.json`; empty where Cherry Servers is not named, or is described by variables alone. */}}
{{- define "windlass.cherrySecret" -}}
{{- if has "cherryservers" .Values.clouds }}
{{- if .Values.configSecret.name }}{{ .Values.configSecret.name }}
{{- else if include "windlass.cherryMade" . }}cherry-cloud-config
{{- end }}
{{- end }}
{{- end }}

{{- define "windlass.checkCherry" -}}
{{- $clouds := .Values.clouds }}
{{- $secret := .Values.configSecret }}
{{- if not (has "cherryservers" $clouds) }}
  {{- $set := "is for Cherry Servers, which `clouds` does not name: --set 'clouds={cherryservers}'" }}
  {{- if .Values.config }}
    {{- fail (printf "config: %s" $set) }}
  {{- end }}
  {{- if or (hasKey $secret "create") (not (has $secret.name (list "" "cherry-cloud-config"))) }}
    {{- fail (printf "configSecret: %s" $set) }}
  {{- end }}
  {{- range $name, $value := .Values.env }}
    {{- if and $value $clouds (hasPrefix "CHERRY_" $name) }}
      {{- fail (printf "env.%s: %s" $name $set) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- if include "windlass.cherryMade" . }}
  {{- range list "apiKey" "projectID" }}
    {{- if and (hasKey $.Values.config .) (empty (get $.Values.config .)) }}
      {{- fail (printf "config.%s: is empty. If there is a Secret with cloud-sa.json, set its name as configSecret.name, and configSecret.create: false" .) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
