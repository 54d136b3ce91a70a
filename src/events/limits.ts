/** Most events that a forwarder puts into one batch. */
export const SENT_BATCH_EVENTS = 500

/** Bytes at which a forwarder closes a batch. One event alone may be longer: it is never cut. */
export const SENT_BATCH_BYTES = 512 * 1024

/** Most events of a batch that a server takes; above what forwarders send, so that they may grow first. */
export const ACCEPTED_BATCH_EVENTS = 2000

/** How far a signature's timestamp may lie from the server's clock, either way. */
export const SIGNATURE_TOLERANCE_MS = 5 * 60_000
