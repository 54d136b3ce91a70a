{{- /* What a schema can't say: sentences for values that do not go together, before anything is installed. */}}
{{- define "windlass.check" -}}
{{- $values := .Values }}
{{- if not (or $values.mode $values.internalSecret $values.keda) }}
  {{- fail "helm --reuse-values takes the former chart's values in place of this one's: use --reset-then-reuse-values" }}
{{- end }}
{{- /* A key with nothing below it is no key at all to helm, and takes the chart's own with it. */}}
{{- range list "clouds" "image" "env" "envFrom" "args" "networking" "robot" "configSecret" "config" "single" "forwarder" "server" "worker" "redis" "keda" "monitoring" "admission" "rbac" "serviceAccount" "nodeSelector" "additionalTolerations" "affinity" "podLabels" "podAnnotations" "podSecurityContext" "securityContext" "extraVolumes" "extraVolumeMounts" }}
  {{- if not (hasKey $values .) }}
    {{- fail (printf "%s: has nothing below it: take the line away, or write {} or [] behind it" .) }}
  {{- end }}
{{- end }}
{{- $split := eq $values.mode "split" }}
{{- include "windlass.checkImage" . }}
{{- if eq ($values.kind | default "Deployment") "DaemonSet" }}
  {{- fail "kind: there is no DaemonSet. For one worker on each of several nodes set mode: split and worker.replicas" }}
{{- end }}
{{- if and (not $split) (gt (int ($values.replicaCount | default 1)) 1) }}
  {{- fail "replicaCount: mode single is one Pod. For more set mode: split and worker.replicas" }}
{{- end }}
{{- if and (not $split) $values.keda.enabled }}
  {{- fail "keda.enabled: mode single is one Pod. To scale workers set mode: split" }}
{{- end }}
{{- if not (or $split $values.redis.enabled) }}
  {{- fail "redis.enabled: mode single has Redis in its Pod. To use another one set mode: split" }}
{{- end }}
{{- $flags := include "windlass.flags" . | fromYaml }}
{{- $redis := list (get $values.env "WINDLASS_REDIS_URL") (get $values.env "WINDLASS_REDIS_URL_FILE") (get $flags "redis-url") }}
{{- if not (or $values.redis.enabled (without $redis nil "")) }}
  {{- fail "redis.enabled: without it set env.WINDLASS_REDIS_URL to the address of a Redis that has maxmemory-policy noeviction" }}
{{- end }}
{{- if gt (int $values.keda.minReplicas) (int $values.keda.maxReplicas) }}
  {{- fail "keda.minReplicas: more than keda.maxReplicas" }}
{{- end }}
{{- include "windlass.checkCherry" . }}
{{- include "windlass.checkNames" . }}
{{- $named := dig "args" "cloud-provider" "" (dict "args" ($values.args | default dict)) }}
{{- if and $named $values.clouds (ne (toString $named) (join "," $values.clouds)) }}
  {{- fail (printf "args.cloud-provider: is %s, but `clouds` is %s: leave it out, and set `clouds`" $named (join "," $values.clouds)) }}
{{- end }}
{{- if and $values.keda.enabled (eq (int $values.keda.minReplicas) 0) }}
  {{- if or (get $flags "cherry-fip-tag") (get $values.env "CHERRY_FIP_TAG") (get $values.config "fipTag") }}
    {{- fail "keda.minReplicas: the control plane's address is moved by workers that run: with a CHERRY_FIP_TAG at least 1" }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Names of variables and flags: a schema tells of these at a wrong place. */}}
{{- define "windlass.checkNames" -}}
{{- $settings := .Files.Get "files/settings.yaml" | fromYaml }}
{{- $listen := "each role has a port of its own, so the chart sets it. For metrics on all addresses set monitoring.podMonitor.enabled" }}
{{- range $name, $value := .Values.env }}
  {{- if not (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" $name) }}
    {{- fail (printf "env.%s: is no name of a variable, which has letters, digits and _" $name) }}
  {{- end }}
  {{- $isOurs := regexMatch "^(WINDLASS|HCLOUD|ROBOT|CHERRY)_" $name }}
  {{- if and $isOurs (not (kindIs "invalid" $value)) (not (has $name $settings.known)) }}
    {{- fail (printf "env.%s: is no variable of Windlass, docs/settings.md has them all" $name) }}
  {{- end }}
{{- end }}
{{- if get .Values.env "WINDLASS_LISTEN" }}
  {{- fail (printf "env.WINDLASS_LISTEN: %s" $listen) }}
{{- end }}
{{- $known := list }}
{{- range $settings.flags }}{{ $known = concat $known . }}{{ end }}
{{- range $name, $_ := include "windlass.flags" . | fromYaml }}
  {{- if hasPrefix "-" $name }}
    {{- fail (printf "args.%s: a flag stands here without its dashes, as %s" $name (trimAll "-" $name)) }}
  {{- end }}
  {{- if not (has (replace "_" "-" $name) $known) }}
    {{- fail (printf "args.%s: is no flag of Windlass, docs/settings.md has them all" $name) }}
  {{- end }}
  {{- if eq $name "listen" }}
    {{- fail (printf "args.listen: %s" $listen) }}
  {{- end }}
{{- end }}
{{- end }}
