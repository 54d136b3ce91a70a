import type { FastifyInstance } from 'fastify'
import Type from 'typebox'

/** `GET /openapi.json`: this API, described by the schemas of its routes. */
export async function openapiRoute(app: FastifyInstance): Promise<void> {
  app.get(
    '/openapi.json',
    {
      schema: {
        summary: 'This description',
        response: { 200: Type.Object({}, { additionalProperties: true, description: 'OpenAPI 3.1.' }) },
      },
    },
    async () => app.swagger(),
  )
}
