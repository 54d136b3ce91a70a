{{- /* Variables by which a role of mode split finds Redis. As YAML. */}}
{{- define "windlass.redisEnv" -}}
{{- if .Values.redis.enabled }}
WINDLASS_REDIS_URL: redis://$(WINDLASS_REDIS_SERVICE_HOST):$(WINDLASS_REDIS_SERVICE_PORT)
{{- end }}
WINDLASS_REDIS_PASSWORD:
  {{- include "windlass.shared" (dict "root" . "key" "WINDLASS_REDIS_PASSWORD" "optional" (not .Values.redis.enabled)) | nindent 2 }}
{{- end }}
