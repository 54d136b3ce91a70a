/** resourceVersions of one kind of object are decimal numbers of any length, without leading zeros (KEP-5504). */
export const isOlder = (a: string, b: string) => (a.length === b.length ? a < b : a.length < b.length)
