{{- define "windlass.tag" -}}
{{ tpl (.Values.image.tag | default .Chart.AppVersion) . }}
{{- end }}

{{- /* A digest may stand in the repository or in the tag. */}}
{{- define "windlass.image" -}}
{{- $tag := include "windlass.tag" . | trimPrefix "@" }}
{{- if contains "@" .Values.image.repository }}
{{- .Values.image.repository }}
{{- else }}
{{- .Values.image.repository }}{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- end }}
{{- end }}

{{- define "windlass.checkImage" -}}
{{- $repository := .Values.image.repository }}
{{- $tag := include "windlass.tag" . }}
{{- if not $repository }}
  {{- fail "image.repository: say where your nodes pull the image from, such as registry.example.com/windlass" }}
{{- end }}
{{- if regexMatch "(hcloud-cloud-controller-manager|hetzner-cloud-controller-manager|cloud-provider-cherry)([:@].*)?$" $repository }}
  {{- fail (printf "image.repository: %s is the image of the replaced controller; say where your nodes pull that of Windlass from" $repository) }}
{{- end }}
{{- if contains "@" $repository }}
  {{- if .Values.image.tag }}
    {{- fail (printf "image.tag: %s, but image.repository has a digest, which says it already: leave image.tag empty" $tag) }}
  {{- end }}
{{- else if contains ":" (base $repository) }}
  {{- fail (printf "image.repository: %s has a tag, which belongs into image.tag" $repository) }}
{{- end }}
{{- /* What `--reset-then-reuse-values` keeps of the replaced controller's values. No image of ours is under its tag, and its Pods would be gone. */}}
{{- if and .Release.IsUpgrade (ne $tag .Chart.AppVersion) }}
  {{- range $kind := list "Deployment" "DaemonSet" }}
    {{- range (lookup "apps/v1" $kind $.Release.Namespace "").items }}
      {{- $annotations := .metadata.annotations | default dict }}
      {{- $labels := .metadata.labels | default dict }}
      {{- $ofRelease := eq (get $annotations "meta.helm.sh/release-name") $.Release.Name }}
      {{- if and $ofRelease (ne (get $labels "app.kubernetes.io/name") "windlass") }}
        {{- range .spec.template.spec.containers }}
          {{- if hasSuffix (printf ":%s" $tag) .image }}
            {{- fail (printf "image.tag: %s is that of %s, which this release runs now: set the tag of Windlass' image, such as --set image.tag=%s" $tag .image $.Chart.AppVersion) }}
          {{- end }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
