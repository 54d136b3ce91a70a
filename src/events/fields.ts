import Type, { type TSchema } from 'typebox'

/** What the schemas of the contract are made of. Each description ends a sentence that begins with "must be". */

export const name = Type.String({
  maxLength: 253,
  pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
  description: 'a DNS name in lower case of up to 253 characters',
})
export const uid = Type.String({
  maxLength: 128,
  pattern: '^[\\w.:-]+$',
  description: "the object's uid",
})
export const resourceVersion = Type.String({
  pattern: '^(0|[1-9][0-9]{0,38})$',
  description: 'a resourceVersion: a decimal number as a string, without leading zeros',
})
export const text = Type.String({ description: 'a string' })
export const flag = Type.Boolean({ description: 'true or false' })
export const port = Type.Integer({ minimum: 0, maximum: 65535, description: 'a port, 0 to 65535' })
/** Keys of labels and annotations begin with a letter or digit, so that none is `__proto__`. */
export const stringMap = Type.Record(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._/-]*$' }), text, {
  additionalProperties: false,
  description: 'an object of strings whose keys are those of labels or annotations',
})
export const list = <T extends TSchema>(items: T, description: string) => Type.Array(items, { description })
