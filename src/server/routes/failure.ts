import Type from 'typebox'

/** Schema of an answer that says what is wrong. */
export const Failure = (description: string) => Type.Object({ message: Type.String() }, { description })
